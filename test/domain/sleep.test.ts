/** Waits with a limit. */
import { expect, test } from 'vitest';
import { within } from '../../src/domain/sleep.ts';
import { FakeClock } from '../support/fake-clock.ts';

test('[L4] a wait ends with the work, its error, or the limit', async () => {
  const clock = new FakeClock();
  expect(await within(Promise.resolve(1), 200, clock, null)).toBe(1);
  await expect(within(Promise.reject(new Error('down')), 200, clock, null)).rejects.toThrow('down');
  expect(clock.next).toBeNull();

  const work = Promise.withResolvers<number>();
  let result: unknown = 'waits';
  const limited = within(work.promise, 200, clock, null).then((value) => (result = value));
  clock.advance(199);
  await Promise.resolve();
  expect(result).toBe('waits');
  clock.advance(1);
  expect(await limited).toBeNull();
  // It fails after the limit.
  work.reject(new Error('later'));
});
