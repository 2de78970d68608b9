/**
 * Statistics of evaluations and of fluency (O3, O4), at a confidence of 95 %. Repeats of one case resemble each other, so cases
 * are the units: an interval says what the rate would be on other cases of the same kind. Pure; the methods are those of
 * docs/evaluation.md and docs/fluency.md.
 */

/** Of the standard normal distribution. */
const Z = 1.959964;

export interface Interval {
  readonly low: number;
  readonly high: number;
}

/** How often one case passed. Runs that could not be made are in neither number. */
export interface CaseCount {
  readonly passed: number;
  readonly total: number;
}

export interface Rate extends Interval {
  /** From 0 to 1. */
  readonly value: number;
}

export interface Spread {
  readonly median: number;
  /** At most a tenth of the values are greater. */
  readonly p90: number;
}

/** Half of the squared normal quantile of 95 %: the pseudo-counts of Agresti and Coull. */
const PSEUDO_COUNT = Z ** 2 / 2;

/**
 * The Wilson score interval of a share.
 *
 * @param passed whole number, at most `total`
 * @returns shares from 0 to 1; the whole range if `total` is 0
 */
export function wilsonInterval(passed: number, total: number): Interval {
  if (total === 0) return { low: 0, high: 1 };
  const share = passed / total;
  const square = (Z * Z) / total;
  const centre = (share + square / 2) / (1 + square);
  const half = (Z * Math.sqrt((share * (1 - share)) / total + square / (4 * total))) / (1 + square);
  return { low: Math.max(0, centre - half), high: Math.min(1, centre + half) };
}

/**
 * The share of runs that passed, with a 95 % interval: the Wilson interval of an effective number of runs.
 *
 * The effective number is at least that of the cases and at most that of the runs. It compares the variance that was found
 * between the cases with the variance that they have if each always ends the same. `PSEUDO_COUNT` is added to both, so few
 * failures do not make the repeats count as independent runs, and one more failure never raises the lower bound.
 *
 * @returns null without a run
 */
export function passRate(counts: readonly CaseCount[]): Rate | null {
  const cases = counts.filter(({ total }) => total > 0);
  const runs = sum(cases.map(({ total }) => total));
  if (runs === 0) return null;
  const value = sum(cases.map(({ passed }) => passed)) / runs;
  // Fewer than the cases if they have different numbers of runs.
  const units = 1 / sum(cases.map(({ total }) => (total / runs) ** 2));
  const found = units ** 2 * sum(cases.map(({ passed, total }) => ((passed - total * value) / runs) ** 2));
  const most = units * value * (1 - value);
  const effective = Math.min(runs, (units * (most + PSEUDO_COUNT)) / (found + PSEUDO_COUNT));
  return { value, ...wilsonInterval(value * effective, effective) };
}

export interface PairedCounts {
  readonly before: CaseCount;
  readonly now: CaseCount;
}

/**
 * How much the mean rate of the same cases has changed. Every case has the same weight.
 *
 * Newcombe's interval for paired shares ("square and add", with a continuity correction of the correlation), from Wilson
 * intervals of an effective number of runs and the covariance of the cases' rates. The effective number is the same for both
 * rates, so that it is known also if every run of one of them passed.
 *
 * @returns shares from -1 to 1; null without a case that has runs in both
 */
export function rateDifference(pairs: readonly PairedCounts[]): Rate | null {
  const cases = pairs.filter(({ before, now }) => before.total > 0 && now.total > 0);
  if (cases.length === 0) return null;
  const before = meanRate(cases.map((pair) => pair.before));
  const now = meanRate(cases.map((pair) => pair.now));
  const value = now.value - before.value;
  const products = cases.map((pair) => (rateOf(pair.now) - now.value) * (rateOf(pair.before) - before.value));
  const covariance = sum(products) / cases.length;
  const corrected = covariance > 0 ? Math.max(0, covariance - 1 / (2 * cases.length)) : covariance;
  const spread = Math.sqrt(now.found * before.found) / cases.length;
  const correlation = spread === 0 ? 0 : corrected / spread;
  const ratio = Math.max(1, (before.most + now.most) / (before.least + now.least));
  const interval = ({ value: mean, runs }: MeanRate): Interval => {
    const effective = Math.min(runs, cases.length * ratio);
    return wilsonInterval(mean * effective, effective);
  };
  const [was, is] = [interval(before), interval(now)];
  const half = (a: number, b: number): number => Math.sqrt(Math.max(0, a * a - 2 * correlation * a * b + b * b));
  return {
    value,
    low: Math.max(-1, value - half(now.value - is.low, was.high - before.value)),
    high: Math.min(1, value + half(before.value - was.low, is.high - now.value)),
  };
}

/** The mean rate of cases, and sums of squares around it. */
interface MeanRate {
  readonly value: number;
  readonly runs: number;
  readonly found: number;
  /** As if each case always ended the same. */
  readonly most: number;
  /** `found`, but not less than what chance alone explains: the variance of the adjusted rates within the cases. */
  readonly least: number;
}

function meanRate(counts: readonly CaseCount[]): MeanRate {
  const value = sum(counts.map(rateOf)) / counts.length;
  const found = sum(counts.map((count) => (rateOf(count) - value) ** 2));
  const withinCases = counts.map(({ passed, total }) => {
    const adjusted = total + 2 * PSEUDO_COUNT;
    const rate = (passed + PSEUDO_COUNT) / adjusted;
    return (rate * (1 - rate)) / adjusted;
  });
  const most = counts.length * value * (1 - value);
  return { value, runs: sum(counts.map(({ total }) => total)), found, most, least: Math.max(found, sum(withinCases)) };
}

function rateOf({ passed, total }: CaseCount): number {
  return passed / total;
}

/**
 * The exact sign test, for up to 1,000 cases: how likely such an imbalance of changed cases, or a greater one, is without a
 * change. For one run per case it is the exact McNemar test.
 *
 * @param better number of cases that pass more often
 * @param worse number of cases that pass less often
 * @returns the two-sided p value; 1 without a changed case
 */
export function signTest(better: number, worse: number): number {
  const changed = better + worse;
  let term = 0.5 ** changed;
  let tail = 0;
  for (let count = 0; count <= Math.min(better, worse); count += 1) {
    tail += term;
    term *= (changed - count) / (count + 1);
  }
  return Math.min(1, 2 * tail);
}

/** Median and nearest-rank 90th percentile; null without a value. */
export function spreadOf(values: readonly number[]): Spread | null {
  if (values.length === 0) return null;
  const sorted = values.toSorted((a, b) => a - b);
  const at = (index: number): number => sorted[index] ?? 0;
  const middle = (sorted.length - 1) / 2;
  return {
    median: (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2,
    p90: at(Math.ceil(sorted.length * 0.9) - 1),
  };
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** The mean difference of pairs, and half the width of its interval at a confidence of 95 %. */
export interface MeanDifference {
  readonly mean: number;
  readonly margin: number;
  readonly pairs: number;
}

/**
 * Compares by task, so that difficult tasks do not hide a difference.
 *
 * @returns of `a` minus `b`, over the names that both have
 */
export function pairedDifference(a: ReadonlyMap<string, number>, b: ReadonlyMap<string, number>): MeanDifference {
  const values = [...a].flatMap(([name, value]) => {
    const other = b.get(name);
    return other === undefined ? [] : [value - other];
  });
  if (values.length === 0) return { mean: 0, margin: Infinity, pairs: 0 };
  const middle = mean(values);
  const squares = sum(values.map((value) => (value - middle) ** 2));
  const margin =
    values.length < 2
      ? Infinity
      : student95(values.length - 1) * Math.sqrt(squares / (values.length - 1) / values.length);
  return { mean: middle, margin, pairs: values.length };
}

/** Of Student's t distribution, for 1 to 8 degrees of freedom. */
const STUDENT_95 = [12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.306] as const;

/**
 * The two-sided quantile of Student's t distribution: what 1.96 is for a known variance.
 *
 * @param freedom degrees of freedom: one less than the number of values; Infinity without any
 */
export function student95(freedom: number): number {
  if (freedom < 1) return Infinity;
  const known = STUDENT_95[freedom - 1];
  if (known !== undefined) return known;
  // The Cornish-Fisher expansion: exact to 0.001 from 9 degrees on.
  return (
    Z +
    (Z ** 3 + Z) / (4 * freedom) +
    (5 * Z ** 5 + 16 * Z ** 3 + 3 * Z) / (96 * freedom ** 2) +
    (3 * Z ** 7 + 19 * Z ** 5 + 17 * Z ** 3 - 15 * Z) / (384 * freedom ** 3)
  );
}

/** The mean of the values of each name, in the order in which the names come. */
export function meansOf(values: Iterable<readonly [name: string, value: number]>): Map<string, number> {
  const byName = Map.groupBy(values, ([name]) => name);
  return new Map([...byName].map(([name, own]) => [name, mean(own.map(([, value]) => value))]));
}

export function mean(values: readonly number[]): number {
  return sum(values) / values.length;
}
