import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { refresher } from '../../../console/session/refresher.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('[U2] asked often, it reads once', async () => {
  let reads = 0;
  const ask = refresher(async () => void (reads += 1));
  for (let n = 0; n < 5; n += 1) ask();
  await vi.runAllTimersAsync();
  expect(reads).toBe(1);
  ask();
  await vi.runAllTimersAsync();
  expect(reads).toBe(2);
});

test('[U2] asked during a read, it reads again after it, so that the last answer is the newest', async () => {
  let state = 'old';
  let shown = '';
  const slow = refresher(async () => {
    const answer = state;
    await new Promise((resolve) => {
      setTimeout(resolve, answer === 'old' ? 5_000 : 10);
    });
    shown = answer;
  });
  slow();
  await vi.advanceTimersByTimeAsync(1_000);
  state = 'new';
  slow();
  await vi.runAllTimersAsync();
  expect(shown).toBe('new');
});
