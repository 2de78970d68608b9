/** Intervals and tests of an evaluation, with published values (O3). */
import { describe, expect, test } from 'vitest';
import { passRate, rateDifference, signTest, spreadOf, wilsonInterval } from '../../cli/statistics.ts';
import type { CaseCount, PairedCounts } from '../../cli/statistics.ts';

describe('[O3] the Wilson interval', () => {
  // Newcombe, Statistics in Medicine 17 (1998), 857-872, table I, method 3.
  test.each([
    [81, 263, 0.2553, 0.3662],
    [15, 148, 0.0624, 0.1605],
    [0, 20, 0, 0.1611],
    [1, 29, 0.0061, 0.1718],
  ])('%i of %i: the published %d to %d', (passed, total, low, high) => {
    const found = wilsonInterval(passed, total);
    expect(found.low).toBeCloseTo(low, 4);
    expect(found.high).toBeCloseTo(high, 4);
  });

  test('nothing is known without a run', () => {
    expect(wilsonInterval(0, 0)).toEqual({ low: 0, high: 1 });
  });
});

const counts = (...all: readonly (readonly [passed: number, total: number])[]): CaseCount[] =>
  all.map(([passed, total]) => ({ passed, total }));
const repeated = (count: number, passed: number, total: number): CaseCount[] =>
  Array.from({ length: count }, () => ({ passed, total }));

describe('[O3] the pass rate', () => {
  test('one run per case: the plain Wilson interval', () => {
    const { low, high } = wilsonInterval(15, 148);
    expect(passRate([...repeated(15, 1, 1), ...repeated(133, 0, 1)])).toEqual({
      value: 15 / 148,
      low: expect.closeTo(low, 10),
      high: expect.closeTo(high, 10),
    });
  });

  test('repeats of cases that always end the same add nothing', () => {
    const once = passRate([...repeated(6, 1, 1), ...repeated(4, 0, 1)]);
    const often = passRate([...repeated(6, 50, 50), ...repeated(4, 0, 50)]);
    expect(often?.low).toBeCloseTo(once?.low ?? 0, 10);
    expect(often?.high).toBeCloseTo(once?.high ?? 0, 10);
  });

  test('many cases that all behave alike count with every run', () => {
    expect(passRate(repeated(200, 5, 10))).toMatchObject(wilsonInterval(1_000, 2_000));
  });

  test('if every run passed, each case counts as one run', () => {
    expect(passRate(repeated(5, 20, 20))).toEqual({
      value: 1,
      low: expect.closeTo(wilsonInterval(5, 5).low, 10),
      high: 1,
    });
  });

  test('one failure of 50 runs changes the interval little', () => {
    const [all, most] = [passRate(repeated(10, 5, 5)), passRate([...repeated(9, 5, 5), ...repeated(1, 4, 5)])];
    expect(all?.low).toBeCloseTo(0.722, 3);
    expect(most?.low).toBeLessThan(all?.low ?? 0);
    expect(most?.low).toBeGreaterThan(0.68);
  });

  test.each([
    [3, 2],
    [5, 5],
    [10, 5],
    [10, 20],
    [40, 3],
    [100, 1],
  ])(
    'one more failure never raises the lower bound, and one more pass never lowers the upper one: %i × %i',
    (count, total) => {
      const failing = (order: readonly number[]): void => {
        const cases = repeated(count, total, total).map((one) => ({ ...one }));
        let before = passRate(cases);
        for (const at of order) {
          const one = cases[at];
          if (one === undefined) throw new Error('no such case');
          one.passed -= 1;
          const next = passRate(cases);
          expect(next?.low).toBeLessThanOrEqual((before?.low ?? 0) + 1e-12);
          expect(next?.high).toBeLessThanOrEqual((before?.high ?? 0) + 1e-12);
          before = next;
        }
      };
      const all = Array.from({ length: count * total }, (_, at) => at);
      failing(all.map((at) => at % count));
      failing(all.map((at) => Math.floor(at / total)));
    },
  );

  test('cases without a run do not count', () => {
    expect(passRate(counts([1, 1], [0, 0]))).toEqual(passRate(counts([1, 1])));
    expect(passRate(counts([0, 0]))).toBeNull();
  });
});

/** Pairs of one run each: the four cells of a paired table. */
function table(both: number, onlyNow: number, onlyBefore: number, neither: number): PairedCounts[] {
  const cell = (count: number, now: number, before: number): PairedCounts[] =>
    Array.from({ length: count }, () => ({
      now: { passed: now, total: 1 },
      before: { passed: before, total: 1 },
    }));
  return [...cell(both, 1, 1), ...cell(onlyNow, 1, 0), ...cell(onlyBefore, 0, 1), ...cell(neither, 0, 0)];
}

describe('[O3] the difference of the pass rate', () => {
  test('one run per case: the published Newcombe interval', () => {
    // Fagerland, Lydersen, Laake, Statistics in Medicine 33 (2014), 2850-2875: airway hyper-responsiveness.
    const found = rateDifference(table(1, 1, 7, 12));
    expect(found?.value).toBeCloseTo(-0.286, 3);
    expect(found?.low).toBeCloseTo(-0.507, 3);
    expect(found?.high).toBeCloseTo(-0.026, 3);
  });

  test('the same result does not mean that there is no difference', () => {
    const found = rateDifference(table(6, 0, 0, 0));
    expect(found?.value).toBe(0);
    expect(found?.low).toBeLessThan(-0.3);
    expect(found?.high).toBeGreaterThan(0.3);
  });

  test('pairing makes the interval narrower if the cases agree', () => {
    const agreeing = rateDifference(table(20, 2, 0, 20));
    const opposed = rateDifference(table(1, 21, 19, 1));
    const width = (found: typeof agreeing): number => (found?.high ?? 0) - (found?.low ?? 0);
    expect(agreeing?.value).toBeCloseTo(opposed?.value ?? 0, 10);
    expect(width(agreeing)).toBeLessThan(width(opposed) * 0.7);
  });

  test('a loss in every case is a regression, also if every run passed before', () => {
    const before = { passed: 5, total: 5 };
    const pairs = Array.from({ length: 10 }, () => ({ before, now: { passed: 4, total: 5 } }));
    expect(rateDifference(pairs)?.high).toBeLessThan(0);
  });

  test('the same loss in two of ten cases may be chance', () => {
    const before = { passed: 5, total: 5 };
    const pairs = Array.from({ length: 10 }, (_, at) => ({ before, now: { passed: at < 2 ? 0 : 5, total: 5 } }));
    expect(rateDifference(pairs)?.value).toBeCloseTo(-0.2, 10);
    expect(rateDifference(pairs)?.high).toBeGreaterThan(0);
  });

  test('a case without a run in one of the reports does not count', () => {
    const lost = { now: { passed: 0, total: 0 }, before: { passed: 1, total: 1 } };
    expect(rateDifference([...table(1, 1, 7, 12), lost])).toEqual(rateDifference(table(1, 1, 7, 12)));
    expect(rateDifference([lost])).toBeNull();
  });
});

describe('[O3] the sign test', () => {
  // 1 and 7: Fagerland, Lydersen, Laake 2014, exact conditional test. The others: sums of binomial coefficients.
  test.each([
    [1, 7, 0.0703],
    [0, 5, 0.0625],
    [0, 6, 0.03125],
    [12, 2, 0.0129],
    [3, 3, 1],
    [0, 0, 1],
  ])('%i better, %i worse: p = %d', (better, worse, p) => {
    expect(signTest(better, worse)).toBeCloseTo(p, 4);
    expect(signTest(worse, better)).toBeCloseTo(p, 4);
  });

  test('a thousand cases', () => {
    expect(signTest(500, 500)).toBe(1);
    expect(signTest(0, 1_000)).toBeLessThan(1e-200);
    expect(signTest(470, 530)).toBeCloseTo(0.062, 3);
  });
});

test.each([
  [[], null],
  [[5], { median: 5, p90: 5 }],
  [[4, 1, 3, 2], { median: 2.5, p90: 4 }],
  [[10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0], { median: 5, p90: 9 }],
])('[O3] median and p90 of %j', (values, spread) => {
  expect(spreadOf(values)).toEqual(spread);
});
