import { expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { Pacer, ReadPacer, Slices } from '../../src/domain/work.ts';
import { FakeClock } from '../support/fake-clock.ts';

const signal = new AbortController().signal;

test('[X2] after an expensive evaluation the thread is free for as long as its work says', async () => {
  const clock = new FakeClock();
  const pacer = new Pacer(clock);
  const order: string[] = [];
  const run = (name: string, steps: number): Promise<void> =>
    pacer.run(
      1_000_000,
      (meter) => {
        meter.charge(steps);
        order.push(`${name} at ${clock.now() - begin}`);
      },
      signal,
    );
  const begin = clock.now();
  const all = Promise.all([run('a', 50 * limits.stepsPerPauseMs), run('b', 20 * limits.stepsPerPauseMs), run('c', 1)]);
  await Promise.resolve();
  expect(order).toEqual(['a at 0']);
  await clock.advance(49);
  expect(order).toEqual(['a at 0']);
  await clock.advance(1);
  await clock.advance(20);
  await all;
  expect(order).toEqual(['a at 0', 'b at 50', 'c at 70']);
});

test('[X2] cheap evaluations do not wait for each other', async () => {
  const pacer = new Pacer(new FakeClock());
  const done = await Promise.all([1, 2, 3].map((value) => pacer.run(100, () => value, signal)));
  expect(done).toEqual([1, 2, 3]);
});

test('[S8] who waits for a turn can be aborted, and an evaluation that fails is paid for', async () => {
  const clock = new FakeClock();
  const pacer = new Pacer(clock);
  const steps = 10 * limits.stepsPerPauseMs;
  await expect(pacer.run(steps, (meter) => meter.charge(steps + 1), signal)).rejects.toThrow('too much work');
  const abort = new AbortController();
  const waiting = pacer.run(1, () => 'never', abort.signal);
  abort.abort(new Error('cancelled'));
  await expect(waiting).rejects.toThrow('cancelled');
});

test('[X2] readers get their slices one after the other, each after a pause', async () => {
  const clock = new FakeClock();
  const pacer = new ReadPacer(clock);
  const begin = clock.now();
  const pauseMs = limits.sliceChars / limits.sliceCharsPerPauseMs;
  const order: string[] = [];
  const read = async (name: string): Promise<void> => {
    const slices = new Slices(pacer);
    for (let slice = 1; slice <= 2; slice += 1) {
      slices.count(limits.sliceChars);
      expect(slices.full).toBe(true);
      await slices.pause();
      order.push(`${name}${slice} at ${(clock.now() - begin) / pauseMs}`);
    }
  };
  const all = Promise.all(['a', 'b', 'c'].map(read));
  for (let ms = 0; ms < 6 * pauseMs; ms += 1) {
    clock.advance(1);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await all;
  expect(order).toEqual(['a1 at 1', 'b1 at 2', 'c1 at 3', 'a2 at 4', 'b2 at 5', 'c2 at 6']);
});

test('[X2] a clock that was put back keeps no reader waiting', async () => {
  let now = 10 * limits.sliceQueueMs;
  let waitMs = 0;
  const pacer = new ReadPacer({
    now: () => now,
    schedule: (delayMs, callback) => {
      waitMs = delayMs;
      queueMicrotask(callback);
      return () => undefined;
    },
  });
  await pacer.pause(limits.sliceChars);
  now = 0;
  await pacer.pause(limits.sliceChars);
  expect(waitMs).toBe(limits.sliceChars / limits.sliceCharsPerPauseMs);
});
