/** Scores: parts from 0 to 1 for each run, and the score of a form, from 0 to 100, with its uncertainty. */
import { mean, meansOf, sum, wilsonInterval } from '../../statistics.ts';
import type { Interval } from '../../statistics.ts';
import type { RunMeasures } from './measure.ts';

/** The parts of the score with their weights: what a user notices most weighs most. */
export const WEIGHTS = {
  /** The answer is right. */
  correctness: 40,
  /** The plan is as fast as the ideal one, without calls that are not needed. */
  plan: 20,
  /** The text keeps to the form. */
  protocol: 15,
  /** Values are handed over by references that have a value. */
  references: 10,
  /** Runs with an error still end with the right answer. */
  repair: 10,
  /** No more tokens than needed. */
  economy: 5,
} as const;

export type PartName = keyof typeof WEIGHTS;
export const PART_NAMES = Object.keys(WEIGHTS) as readonly PartName[];

/** Null: the part does not apply to the run. */
export type RunParts = Readonly<Record<PartName, number | null>>;

export function partsOf(run: RunMeasures): RunParts {
  const ifSolved = (value: number): number => (run.solved ? Math.min(1, value) : 0);
  const { needed, made, premature } = run.calls;
  const economyOfCalls = needed / Math.max(1, needed, made);
  return {
    correctness: run.solved ? 1 : 0,
    plan: premature > 0 ? 0 : economyOfCalls * ifSolved(run.idealMs / Math.max(1, run.makespanMs)),
    // Without any call, nothing shows that the model can act in this form.
    protocol: run.validity.length === 0 || made === 0 ? 0 : mean(run.validity),
    references: referencesOf(run),
    repair: repairOf(run),
    economy: ifSolved(run.idealEffort / Math.max(1, run.effort)),
  };
}

/** In tasks of other kinds, a mistake is not needed: it must not raise the score. */
function repairOf({ kind, solved, rejected, failed, validity }: RunMeasures): number | null {
  if (kind === 'repair') return solved ? 1 : 0;
  const hasErred = rejected + failed > 0 || validity.some((value) => value < 1);
  return hasErred && !solved ? 0 : null;
}

/** Of the values that can be handed over, the share that is, less the share of references without a value. */
function referencesOf({ references: { needed, used, missing, unknown } }: RunMeasures): number | null {
  if (needed === 0) return null;
  const good = Math.max(0, used - missing);
  return good === 0 ? 0 : Math.min(1, good / needed) * (good / (good + missing + unknown));
}

/** From 0 to 1: the weighted mean of the parts that apply. */
export function scoreOf(parts: RunParts): number {
  const applied = PART_NAMES.flatMap((name) => {
    const value = parts[name];
    return value === null ? [] : [{ value, weight: WEIGHTS[name] }];
  });
  return sum(applied.map(({ value, weight }) => value * weight)) / sum(applied.map(({ weight }) => weight));
}

export interface FormScore {
  /** From 0 to 100. */
  readonly score: number;
  /** At a confidence of 95 %, also from 0 to 100. */
  readonly interval: Interval;
  /** From 0 to 100; null if no run has the part. */
  readonly parts: Readonly<Record<PartName, number | null>>;
  /** From 0 to 1, by task: the mean of its repetitions. */
  readonly byTask: ReadonlyMap<string, number>;
}

/** @param runs of one form, without those that the endpoint has failed; at least one */
export function formScore(runs: readonly RunMeasures[]): FormScore {
  const parts = runs.map(partsOf);
  // Repetitions of a task depend on each other, so tasks are counted instead of runs.
  const byTask = meansOf(runs.map((run, index) => [run.task, scoreOf(parts[index] ?? partsOf(run))]));
  const total = sum([...byTask.values()]);
  // Scores between 0 and 1 vary less than shares with the same mean: the interval is wider than needed.
  const { low, high } = wilsonInterval(Math.round(total), byTask.size);
  return {
    score: (100 * total) / byTask.size,
    interval: { low: 100 * low, high: 100 * high },
    parts: Object.fromEntries(
      PART_NAMES.map((name) => {
        const values = parts.flatMap((each) => each[name] ?? []);
        return [name, values.length === 0 ? null : 100 * mean(values)];
      }),
    ) as Record<PartName, number | null>,
    byTask,
  };
}
