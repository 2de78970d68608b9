/** One timer for all pieces of a stream (L2). */
import { expect, test } from 'vitest';
import { StreamTimeout } from '../../../src/llm/routing/stream-timeout.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';

const late = (): Error => new Error('late');
const never = (): Promise<never> => new Promise(() => undefined);

/** A clock that counts its timers. */
class CountingClock extends VirtualClock {
  set = 0;

  override schedule(delayMs: number, callback: () => void): () => void {
    this.set += 1;
    return super.schedule(delayMs, callback);
  }
}

test('[L2] each piece has the full timeout, and a thousand pieces set few timers', async () => {
  const clock = new CountingClock();
  const timeout = new StreamTimeout(clock, new AbortController().signal);
  for (let piece = 0; piece < 1_000; piece += 1) {
    clock.advance(9);
    expect(await timeout.wait(Promise.resolve(piece), 1_000, late)).toBe(piece);
  }
  expect(clock.set).toBeLessThan(20);
  const stalled = timeout.wait(never(), 1_000, late);
  const outcome = expect(stalled).rejects.toThrow('late');
  clock.advance(999);
  await Promise.resolve();
  clock.advance(1);
  await outcome;
  timeout.end();
  expect(clock.next).toBeNull();
});

test('[L2] a timeout shorter than the previous one starts now', async () => {
  const clock = new VirtualClock();
  const timeout = new StreamTimeout(clock, new AbortController().signal);
  await timeout.wait(Promise.resolve(), 60_000, late);
  const stalled = expect(timeout.wait(never(), 100, late)).rejects.toThrow('late');
  clock.advance(100);
  await stalled;
});

test('[L2] an abort ends the current wait and all later ones', async () => {
  const abort = new AbortController();
  const timeout = new StreamTimeout(new VirtualClock(), abort.signal);
  const waiting = expect(timeout.wait(never(), 1_000, late)).rejects.toThrow('aborted');
  abort.abort();
  await waiting;
  await expect(timeout.wait(never(), 1_000, late)).rejects.toThrow('aborted');
});

test('[L2] time between two reads does not count', async () => {
  const clock = new VirtualClock();
  const timeout = new StreamTimeout(clock, new AbortController().signal);
  await timeout.wait(Promise.resolve(), 100, late);
  clock.advance(10_000);
  await expect(timeout.wait(Promise.resolve('on time'), 100, late)).resolves.toBe('on time');
});

test('[L2] after a wait whose timer could not be set, an abort rejects nothing that no caller awaits', async () => {
  const unhandled: unknown[] = [];
  const note = (fault: unknown): void => void unhandled.push(fault);
  process.on('unhandledRejection', note);
  const abort = new AbortController();
  const clock = new VirtualClock();
  clock.schedule = () => {
    throw new Error('the host has ended');
  };
  const timeout = new StreamTimeout(clock, abort.signal);
  await expect(timeout.wait(never(), 1_000, late)).rejects.toThrow('the host has ended');
  abort.abort();
  await new Promise((resolve) => void setImmediate(resolve));
  process.off('unhandledRejection', note);
  expect(unhandled).toEqual([]);
});
