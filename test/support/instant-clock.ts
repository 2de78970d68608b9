/** A clock without waiting. */
export { instantClock } from '../../testing/instant-clock.ts';
