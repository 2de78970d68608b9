/** The verdict of the soak test: what grows is found, and what is only noisy is not. */
import { describe, expect, test } from 'vitest';
import { longestLife, trendOf, verdictOf } from './verdict.ts';
import type { Bound, Point } from './verdict.ts';

const ROWS: Bound = { kind: 'count', slack: 0 };
const MEMORY = { kind: 'trend', perHour: 8 } as const satisfies Bound;
const NOISE = [0, 3, -2, 4, -3, 1, -4, 2, 3, -1, 0, -2];

const points = (values: readonly number[], life = 0): Point[] =>
  values.map((value, at) => ({ hours: at / 12, value, life }));
const resultOf = (bound: Bound, of: readonly Point[]): string =>
  verdictOf({ name: 'x', unit: '', bound, perLife: bound.kind === 'trend', points: of }).result;

describe('a soak test', () => {
  test('one row more than at the beginning is growth, and a row that goes again is none', () => {
    expect(resultOf(ROWS, points([3, 9, 4]))).toBe('grows');
    expect(resultOf(ROWS, points([3, 9, 3]))).toBe('returns');
    expect(resultOf(ROWS, points([3]))).toBe('too few points');
  });

  test('rows that are kept on purpose may be there, and not one more', () => {
    const kept = (last: number): Point[] => [
      { hours: 0, value: 13, life: 0, allowed: 10 },
      { hours: 1, value: last, life: 0, allowed: 500 },
    ];
    expect(resultOf(ROWS, kept(503))).toBe('returns');
    expect(resultOf(ROWS, kept(504))).toBe('grows');
  });

  test('the slope is that of the line, and its error is that of the noise', () => {
    expect(trendOf(points([0, 1, 2, 3]))).toEqual({ slope: expect.closeTo(12), error: expect.closeTo(0) });
    const noisy = trendOf(points(NOISE.map((noise, at) => 100 + at + noise)));
    expect(noisy.slope).toBeGreaterThan(5);
    expect(noisy.error).toBeGreaterThan(1);
  });

  test('a leak under the noise of the measure is found, and noise alone is none', () => {
    expect(resultOf(MEMORY, points(NOISE.map((noise) => 100 + noise)))).toBe('returns');
    expect(resultOf(MEMORY, points(NOISE.map((noise, at) => 100 + 3 * at + noise)))).toBe('grows');
    expect(resultOf(MEMORY, points([9, 1, 2, 3]))).toBe('too few points');
    // The first point is the warm-up.
    expect(resultOf(MEMORY, points([0, 100, 100, 100, 100]))).toBe('returns');
    const slow = points([0, 50, 80, 100, 100, 100, 101]);
    expect(resultOf(MEMORY, slow)).toBe('grows');
    expect(resultOf({ ...MEMORY, warmUpPoints: 3 }, slow)).toBe('returns');
    expect(resultOf({ ...MEMORY, warmUpPoints: 4 }, slow)).toBe('too few points');
  });

  test('memory is compared within one life of the process', () => {
    const restarted = [...points([90, 95, 100], 0), ...points([20, 40, 41, 40, 41], 1), ...points([70], 2)];
    expect(longestLife(restarted).map(({ life }) => life)).toEqual([1, 1, 1, 1, 1]);
    expect(resultOf(MEMORY, restarted)).toBe('returns');
  });
});
