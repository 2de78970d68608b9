/** A clock that only the test advances. */
export { VirtualClock as FakeClock } from '../../testing/virtual-clock.ts';
