/** The comparison of an evaluation with an earlier one (O3): cases are paired by name, if they are equal. */
import { digestOfCase } from './dataset.ts';
import type { Dataset } from './dataset.ts';
import type { EarlierReport, EvalReport } from './report.ts';
import { rateDifference, signTest, spreadOf } from '../statistics.ts';
import type { CaseCount, Rate } from '../statistics.ts';

interface Change {
  readonly name: string;
  /** Pass rates from 0 to 1. */
  readonly before: number;
  readonly now: number;
}

type Counted = Pick<EarlierReport['cases'][number], 'passed' | 'failed'>;

/** Medians over the compared cases of each case's median; null where nothing is known. */
interface Medians {
  readonly before: number | null;
  readonly now: number | null;
}

export interface Comparison {
  readonly file: string;
  readonly created_at: string;
  readonly agent: string;
  readonly models: readonly string[];
  /** Number of equal cases with runs in both reports: only these are compared. */
  readonly compared: number;
  readonly better: readonly Change[];
  readonly worse: readonly Change[];
  /** Names of cases that are not compared. */
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** In both, with another content. */
  readonly edited: readonly string[];
  /** In both, without a run in one of them: errors. */
  readonly unmeasured: readonly string[];
  /** Difference of the mean pass rate of the compared cases, now minus before; null without one. */
  readonly pass_rate: Rate | null;
  /** Two-sided, of the numbers of better and worse cases. */
  readonly sign_test_p: number;
  /** The interval of the difference lies below 0. */
  readonly is_regression: boolean;
  readonly tokens: Medians;
  readonly cost: Medians;
  readonly ms: Medians;
}

/** The cases of two reports, or of a dataset and a report, with equal names. */
function sharedCases<T extends { readonly name: string; readonly digest: string }>(
  cases: readonly T[],
  { cases: others }: EarlierReport,
): { readonly now: T; readonly before: EarlierReport['cases'][number]; readonly isEqual: boolean }[] {
  const earlier = new Map(others.map((one) => [one.name, one]));
  return cases.flatMap((now) => {
    const before = earlier.get(now.name);
    return before === undefined ? [] : [{ now, before, isEqual: now.digest === before.digest }];
  });
}

/** @throws Error if the dataset has no case of the earlier report */
export function requireComparable(dataset: Dataset, before: EarlierReport): void {
  const cases = dataset.cases.map((one) => ({ name: one.name, digest: digestOfCase(one) }));
  const shared = sharedCases(cases, before);
  if (shared.some(({ isEqual }) => isEqual)) return;
  const edited = shared.length === 0 ? '' : `; ${shared.length} have the name of a case here, but another content`;
  throw new Error(`is of another dataset: none of its ${before.cases.length} cases is in this one${edited}`);
}

/** Compares the equal cases of both reports. */
export function compareReports(now: EvalReport, before: EarlierReport, file: string): Comparison {
  const shared = sharedCases(now.cases, before);
  const equal = shared.filter(({ isEqual }) => isEqual);
  const names = new Set(now.cases.map(({ name }) => name));
  const earlierNames = new Set(before.cases.map(({ name }) => name));
  const measured = equal.filter((pair) => runsOf(pair.now) > 0 && runsOf(pair.before) > 0);
  const changes = measured.map((pair): Change => ({
    name: pair.now.name,
    before: pair.before.passed / runsOf(pair.before),
    now: pair.now.passed / runsOf(pair.now),
  }));
  const better = changes.filter((one) => one.now > one.before);
  const worse = changes.filter((one) => one.now < one.before);
  const difference = rateDifference(measured.map((pair) => ({ before: countOf(pair.before), now: countOf(pair.now) })));
  const medians = (of: 'tokens' | 'cost' | 'ms'): Medians => ({
    before: medianOf(measured.map(({ before: one }) => one[of])),
    now: medianOf(measured.map(({ now: one }) => one[of])),
  });
  return {
    file,
    created_at: before.created_at,
    agent: before.agent,
    models: before.models,
    compared: measured.length,
    better,
    worse,
    added: now.cases.filter(({ name }) => !earlierNames.has(name)).map(({ name }) => name),
    removed: before.cases.filter(({ name }) => !names.has(name)).map(({ name }) => name),
    edited: shared.filter(({ isEqual }) => !isEqual).map((pair) => pair.now.name),
    unmeasured: equal.filter((pair) => !measured.includes(pair)).map((pair) => pair.now.name),
    pass_rate: difference,
    sign_test_p: signTest(better.length, worse.length),
    is_regression: difference !== null && difference.high < 0,
    tokens: medians('tokens'),
    cost: medians('cost'),
    ms: medians('ms'),
  };
}

function countOf(one: Counted): CaseCount {
  return { passed: one.passed, total: runsOf(one) };
}

function runsOf({ passed, failed }: Counted): number {
  return passed + failed;
}

function medianOf(values: readonly (number | null)[]): number | null {
  return spreadOf(values.filter((value) => value !== null))?.median ?? null;
}
