/** The result of `cortex fluency`: one document, which `--json` prints and later runs compare with. */
import { z } from 'zod';
import { FORM_NAMES } from '../tasks/forms.ts';
import type { FormName } from '../tasks/forms.ts';
import type { RunMeasures } from '../score/measure.ts';
import type { Mistake } from '../score/mistakes.ts';
import type { Recommendation } from '../score/recommend.ts';
import { PART_NAMES, pairedDifference, partsOf, scoreOf } from '../score/score.ts';
import type { Difference, FormScore, PartName } from '../score/score.ts';

/** Of the document. Members may be added to a version; removed or changed ones make another version. */
const REPORT_VERSION = 1;

export interface FormReport {
  readonly form: FormName;
  /** Why there are no runs; null if there are. */
  readonly unavailable: string | null;
  /** What looks wrong although there are runs. */
  readonly note: string | null;
  /** Null without runs. */
  readonly score: FormScore | null;
  readonly runs: readonly RunMeasures[];
  /** Runs that the endpoint has failed; they are not scored. */
  readonly endpointErrors: readonly string[];
}

export interface FluencyReport {
  readonly model: string;
  /** Scheme and host, without a path or a key. */
  readonly endpoint: string;
  readonly tasks: number;
  readonly repeat: number;
  readonly forms: readonly FormReport[];
  readonly recommendation: Recommendation;
  /** Lines of YAML. */
  readonly snippet: readonly string[];
  /** Runs that did not start. */
  readonly omitted: number;
}

/** As JSON: names in snake_case, scores from 0 to 100. */
export function reportDocument(report: FluencyReport): Record<string, unknown> {
  const { model, endpoint, tasks, repeat, forms, recommendation, snippet, omitted } = report;
  const usage = usageOf(forms.flatMap(({ runs }) => runs));
  return {
    version: REPORT_VERSION,
    model,
    endpoint,
    tasks,
    repeat,
    omitted_runs: omitted,
    usage,
    forms: forms.map(formDocument),
    recommendation: {
      form: recommendation.form,
      protocol: recommendation.protocol,
      reasons: recommendation.reasons,
      manifest: snippet.join('\n'),
    },
    runs: forms.flatMap(({ runs }) => runs.map(runDocument)),
  };
}

function formDocument({ form, unavailable, note, score, runs, endpointErrors }: FormReport): Record<string, unknown> {
  return {
    form,
    unavailable,
    note,
    runs: runs.length,
    solved: runs.filter(({ solved }) => solved).length,
    endpoint_errors: endpointErrors.length,
    score: score === null ? null : rounded(score.score),
    interval: score === null ? null : [rounded(score.interval.low), rounded(score.interval.high)],
    parts:
      score === null ? null : Object.fromEntries(PART_NAMES.map((name) => [name, roundedOrNull(score.parts[name])])),
  };
}

function runDocument(run: RunMeasures): Record<string, unknown> {
  const parts = partsOf(run);
  return {
    task: run.task,
    kind: run.kind,
    form: run.form,
    repetition: run.repetition,
    solved: run.solved,
    reason: run.reason,
    score: rounded(100 * scoreOf(parts)),
    parts: Object.fromEntries(
      PART_NAMES.map((name) => {
        const value = parts[name];
        return [name, value === null ? null : rounded(100 * value)];
      }),
    ),
    generations: run.validity.length,
    ideal_generations: run.idealGenerations,
    calls: run.calls,
    rejected_actions: run.rejected,
    failed_actions: run.failed,
    repaired_actions: run.repaired,
    warnings: run.warnings,
    references: run.references,
    nominal_ms: run.makespanMs,
    ideal_ms: run.idealMs,
    prompt_tokens: run.usage.prompt,
    completion_tokens: run.usage.completion,
    cost: run.usage.cost,
    first_action_ms: run.firstActionMs,
    ms: run.ms,
    mistakes: run.mistakes,
  };
}

export interface TotalUsage {
  readonly model_calls: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  /** US dollars; null if the price of a run is unknown. */
  readonly cost: number | null;
  /** Whether the endpoint did not count some of them. */
  readonly estimated: boolean;
}

export function usageOf(runs: readonly RunMeasures[]): TotalUsage {
  const sum = (of: (run: RunMeasures) => number): number => runs.reduce((total, run) => total + of(run), 0);
  const hasCost = runs.length > 0 && runs.every(({ usage }) => usage.cost !== null);
  return {
    model_calls: sum(({ usage }) => usage.calls),
    prompt_tokens: sum(({ usage }) => usage.prompt),
    completion_tokens: sum(({ usage }) => usage.completion),
    cost: hasCost ? sum(({ usage }) => usage.cost ?? 0) : null,
    estimated: runs.some(({ usage }) => usage.estimated),
  };
}

export interface MistakeCount {
  readonly code: string;
  readonly count: number;
  readonly example: Mistake & { readonly task: string };
}

/** The mistakes of runs by code, the most frequent ones first, each with its first example. */
export function mistakesByCode(runs: readonly RunMeasures[]): MistakeCount[] {
  const found = new Map<string, MistakeCount>();
  for (const { task, mistakes } of runs) {
    for (const mistake of mistakes) {
      const { count = 0, example = { ...mistake, task } } = found.get(mistake.code) ?? {};
      found.set(mistake.code, { code: mistake.code, count: count + 1, example });
    }
  }
  return [...found.values()].sort((a, b) => b.count - a.count);
}

const earlierReport = z.looseObject({
  version: z.literal(REPORT_VERSION),
  model: z.string(),
  runs: z.array(z.looseObject({ task: z.string(), form: z.enum(FORM_NAMES), score: z.number().min(0).max(100) })),
});

export type EarlierReport = z.infer<typeof earlierReport>;

/** @throws Error if it is no report of this version */
export function readReport(text: string): EarlierReport {
  const read = earlierReport.safeParse(JSON.parse(text));
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  const place = issue === undefined ? '' : `${issue.path.join('.')}: ${issue.message}`;
  throw new Error(`is not a report of "cortex fluency --json" in version ${REPORT_VERSION} (${place})`);
}

/** The change of a form since an earlier report, over the tasks that both have. */
export function changeSince({ score }: Pick<FormReport, 'score'>, form: FormName, earlier: EarlierReport): Difference {
  const before = new Map<string, number[]>();
  for (const run of earlier.runs) {
    if (run.form === form) before.set(run.task, [...(before.get(run.task) ?? []), run.score / 100]);
  }
  const means = new Map([...before].map(([task, values]) => [task, values.reduce((a, b) => a + b, 0) / values.length]));
  return pairedDifference(score?.byTask ?? new Map(), means);
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10;
}

function roundedOrNull(value: FormScore['parts'][PartName]): number | null {
  return value === null ? null : rounded(value);
}
