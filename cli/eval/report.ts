/** The report of an evaluation: what is written as JSON, and what an earlier one must have to be compared (O3). */
import { z } from 'zod';
import { describeIssue } from '../../src/catalog/check/issues.ts';
import { parseJson } from '../../src/domain/json.ts';
import { digestOfCase, digestOfDataset, MOST_CASES, NAME_CHARS } from './dataset.ts';
import type { Dataset } from './dataset.ts';
import type { CaseResult } from './evaluate.ts';
import { passRate, spreadOf, sum, wilsonInterval } from '../statistics.ts';
import type { Rate, Spread } from '../statistics.ts';

/** Of the form of the report. */
export const REPORT_VERSION = 1;

/** Characters of an earlier report that are read. */
const REPORT_CHARS = 256 * 1024 * 1024;

export interface CaseSummary {
  readonly name: string;
  /** SHA-256 of the case: only equal cases are compared. */
  readonly digest: string;
  readonly passed: number;
  readonly failed: number;
  /** Runs that could not be made or judged: they are not part of the pass rate. */
  readonly errors: number;
  readonly pass_rate: Rate | null;
  /** Medians of the runs that were made; null without one. Cost also without a known price. */
  readonly tokens: number | null;
  readonly cost: number | null;
  readonly ms: number | null;
}

export interface ReportHead {
  readonly version: typeof REPORT_VERSION;
  /** ISO 8601. */
  readonly created_at: string;
  readonly dataset: { readonly file: string; readonly digest: string; readonly cases: number };
  /** For cases that name none. */
  readonly agent: string;
  /** The models that answered. */
  readonly models: readonly string[];
  /** The address of the system; `temporary`: one of this machine for this evaluation; `none`: no case needed one. */
  readonly system: string;
  readonly options: { readonly repeat: number; readonly concurrency: number; readonly judge: string | null };
}

export interface EvalReport extends ReportHead {
  readonly passed: number;
  readonly failed: number;
  readonly errors: number;
  /** Runs that were not made, because the evaluation was stopped. */
  readonly omitted: number;
  /** Null if no run could be made. */
  readonly pass_rate: Rate | null;
  readonly tokens: ({ readonly total: number } & Spread) | null;
  readonly cost: ({ readonly total: number } & Spread) | null;
  readonly ms: Spread | null;
  /** What the judges used, which is not part of `tokens` and `cost`; null if none was asked. */
  readonly judge: JudgeTotals | null;
  readonly cases: readonly CaseSummary[];
  readonly results: readonly CaseResult[];
}

interface JudgeTotals {
  readonly judgements: number;
  readonly errors: number;
  readonly models: readonly string[];
  readonly tokens: number;
  /** Null if the price of a model is unknown. */
  readonly cost: number | null;
}

/**
 * @param results of `evaluate`
 * @param head.omitted number of runs that were not made; default 0
 */
export function reportOf(
  dataset: Dataset,
  results: readonly CaseResult[],
  head: Omit<ReportHead, 'version' | 'dataset' | 'models'> & { readonly file: string; readonly omitted?: number },
): EvalReport {
  const { file, omitted = 0, ...given } = head;
  const cases = dataset.cases.map((one): CaseSummary => {
    const own = results.filter(({ name }) => name === one.name);
    const made = own.filter(({ outcome }) => outcome !== 'error');
    const counts = countsOf(own);
    const { passed } = counts;
    return {
      name: one.name,
      digest: digestOfCase(one),
      ...counts,
      // The repeats of one case are independent of each other.
      pass_rate: made.length === 0 ? null : { value: passed / made.length, ...wilsonInterval(passed, made.length) },
      tokens: spreadOf(made.map(({ tokens }) => tokens))?.median ?? null,
      cost: spreadOf(made.flatMap(({ cost }) => cost ?? []))?.median ?? null,
      ms: spreadOf(made.map(({ ms }) => ms))?.median ?? null,
    };
  });
  const made = results.filter(({ outcome }) => outcome !== 'error');
  return {
    version: REPORT_VERSION,
    ...given,
    dataset: { file, digest: digestOfDataset(dataset), cases: dataset.cases.length },
    models: [...new Set(results.flatMap(({ models }) => models))].sort(),
    ...countsOf(results),
    omitted,
    pass_rate: passRate(cases.map(({ passed, failed }) => ({ passed, total: passed + failed }))),
    tokens: totalled(made.map(({ tokens }) => tokens)),
    cost: totalled(made.flatMap(({ cost }) => cost ?? [])),
    ms: spreadOf(made.map(({ ms }) => ms)),
    judge: judgeTotals(results),
    cases,
    results,
  };
}

function countsOf(results: readonly CaseResult[]): Pick<EvalReport, 'passed' | 'failed' | 'errors'> {
  const of = (wanted: CaseResult['outcome']): number => results.filter(({ outcome }) => outcome === wanted).length;
  return { passed: of('passed'), failed: of('failed'), errors: of('error') };
}

function totalled(values: readonly number[]): EvalReport['tokens'] {
  const spread = spreadOf(values);
  return spread === null ? null : { total: sum(values), ...spread };
}

function judgeTotals(results: readonly CaseResult[]): JudgeTotals | null {
  const judgements = results.flatMap(({ judgements: own }) => own);
  if (judgements.length === 0) return null;
  const costs = judgements.map(({ cost }) => cost);
  return {
    judgements: judgements.length,
    errors: judgements.filter(({ outcome }) => outcome === 'error').length,
    models: [...new Set(judgements.flatMap(({ models }) => models))].sort(),
    tokens: sum(judgements.map(({ tokens }) => tokens)),
    cost: costs.includes(null) ? null : sum(costs.map((cost) => cost ?? 0)),
  };
}

const count = z.number().int().min(0);
const median = z.number().nullable();

/** What is compared. Later versions may add members. */
const earlierReport = z.object({
  created_at: z.iso.datetime(),
  dataset: z.object({ digest: z.string() }),
  agent: z.string(),
  models: z.array(z.string()),
  cases: z
    .array(
      z.object({
        name: z.string().max(NAME_CHARS),
        digest: z.string(),
        passed: count,
        failed: count,
        tokens: median,
        cost: median,
        ms: median,
      }),
    )
    .max(MOST_CASES),
});

export type EarlierReport = z.infer<typeof earlierReport>;

/** @throws Error that says what the text is not */
export function readReport(text: string): EarlierReport {
  if (text.length > REPORT_CHARS) throw new Error(`has ${text.length} characters (allowed: ${REPORT_CHARS})`);
  const value = parseJson(text);
  if (value === undefined) throw new Error('is not JSON');
  const head = z.object({ version: z.json() }).safeParse(value);
  if (!head.success) throw new Error('is not a report of cortex eval: it has no "version"');
  if (head.data.version !== REPORT_VERSION) {
    const found = JSON.stringify(head.data.version).slice(0, 20);
    throw new Error(`is a report of version ${found} (supported: ${REPORT_VERSION}); make a new one`);
  }
  const read = earlierReport.safeParse(value);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  const what = issue === undefined ? '' : `: ${issue.path.join('.')}: ${describeIssue(issue, value)}`;
  throw new Error(`is not a report of cortex eval${what}`);
}
