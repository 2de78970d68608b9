/** The result of `cortex fluency`: one document, which `--json` prints and `--out` writes. */
import type { FormName } from '../tasks/forms.ts';
import type { RunMeasures } from '../score/measure.ts';
import type { Mistake } from '../score/mistakes.ts';
import type { Recommendation } from '../score/recommend.ts';
import { PART_NAMES, partsOf, scoreOf } from '../score/score.ts';
import type { FormScore, PartName } from '../score/score.ts';
import type { WorkEnd } from '../run/fluency.ts';
import { comparisonDocument, REPORT_VERSION, rounded } from './comparison.ts';
import type { EarlierReport } from './comparison.ts';

/** Why runs did not start. */
export const END_REASONS: Readonly<Record<WorkEnd, string>> = {
  complete: 'none was left',
  budget: 'the budget did not allow them',
  stopped: 'the command was stopped',
  endpoint: 'the endpoint has failed several runs in a row',
};

export interface FormReport {
  readonly form: FormName;
  /** Why the form was not run; null if it was. */
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
  readonly end: WorkEnd;
  /** The last error of an endpoint that could not be used to the end, or for any run; null if it could. */
  readonly endpointFailure: string | null;
  /** Of the definition of each task, by its name. */
  readonly digests: ReadonlyMap<string, string>;
}

/** As JSON: names in snake_case, scores from 0 to 100. */
export function reportDocument(report: FluencyReport, earlier: EarlierReport | null): Record<string, unknown> {
  const { model, endpoint, tasks, repeat, forms, recommendation, snippet, omitted, end, digests } = report;
  const usage = usageOf(forms.flatMap(({ runs }) => runs));
  return {
    version: REPORT_VERSION,
    model,
    endpoint,
    tasks,
    repeat,
    omitted_runs: omitted,
    end,
    endpoint_failure: report.endpointFailure,
    usage,
    forms: forms.map(formDocument),
    recommendation: {
      form: recommendation.form,
      protocol: recommendation.protocol,
      tasks: recommendation.tasks,
      reasons: recommendation.reasons,
      manifest: snippet.join('\n'),
    },
    comparison: earlier === null ? null : comparisonDocument(report, earlier),
    task_digests: Object.fromEntries(digests),
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

function roundedOrNull(value: FormScore['parts'][PartName]): number | null {
  return value === null ? null : rounded(value);
}
