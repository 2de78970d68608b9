import { expect, test } from 'vitest';
import { backoffMs } from '../../src/domain/backoff.ts';

const times = { delayMs: 500, maxDelayMs: 3_000 };

test.each([
  ['none', [500, 500, 500, 500]],
  ['linear', [500, 1_000, 1_500, 2_000]],
  ['exponential', [500, 1_000, 2_000, 3_000]],
] as const)('[S7] backoff %s waits %j ms after the first failed attempts', (backoff, expected) => {
  expect([1, 2, 3, 4].map((attempt) => backoffMs({ ...times, backoff }, attempt))).toEqual(expected);
});

test('[S7] only an exponential backoff has jitter, over its whole length', () => {
  expect(backoffMs(times, 2, 0)).toBe(0);
  expect(backoffMs(times, 2, 0.5)).toBe(500);
  expect(backoffMs(times, 9, 0.5)).toBe(1_500);
  expect(backoffMs({ ...times, backoff: 'linear' }, 2, 0)).toBe(1_000);
});

test('[S7] the backoff has a maximum for any number of attempts', () => {
  expect(backoffMs(times, 5_000)).toBe(3_000);
});
