/** Waits with a limit. */
import { describe, expect, test } from 'vitest';
import { unlessAborted, within } from '../../src/domain/sleep.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';

test('[L4] a wait ends with the work, its error, or the limit', async () => {
  const clock = new VirtualClock();
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

describe('[J5] work that may be given up', () => {
  test('ends as the work does', async () => {
    const { signal } = new AbortController();
    expect(await unlessAborted(Promise.resolve(3), signal)).toBe(3);
    await expect(unlessAborted(Promise.reject(new Error('no')), signal)).rejects.toThrow('no');
  });

  test.each([
    ['before', AbortSignal.abort(new Error('too late'))],
    ['during', null],
  ])('an abort %s it counts, and the end of the work is ignored', async (_, aborted) => {
    const abort = new AbortController();
    const { promise, reject } = Promise.withResolvers<never>();
    const waiting = unlessAborted(promise, aborted ?? abort.signal);
    abort.abort(new Error('too late'));
    await expect(waiting).rejects.toThrow('too late');
    reject(new Error('nobody hears this'));
  });
});
