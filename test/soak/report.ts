/** The report of a soak test: a line for each checkpoint, and a table with a verdict for each measure. */
import type { Sample } from './measures.ts';
import { verdictOf } from './verdict.ts';
import type { Measure, Point, Verdict } from './verdict.ts';

const MEBIBYTE = 1_048_576;

export interface Checkpoint {
  /** Since the beginning, in hours. */
  readonly hours: number;
  /** Numbers of the lives of both processes. */
  readonly lives: { readonly worker: number; readonly runner: number };
  readonly samples: readonly Sample[];
}

/** A table that appears later had no rows before. */
function measuresOf(checkpoints: readonly Checkpoint[]): Measure[] {
  const kinds = new Map(checkpoints.flatMap(({ samples }) => samples.map((sample) => [sample.name, sample])));
  return [...kinds.values()].map(({ name, unit, bound, of }) => ({
    name,
    unit,
    bound,
    perLife: of !== null,
    points: checkpoints.flatMap(({ hours, lives, samples }): Point[] => {
      const found = samples.find((sample) => sample.name === name);
      // An inspector may not answer.
      if (found === undefined && bound.kind === 'trend') return [];
      return [{ hours, value: found?.value ?? 0, allowed: found?.allowed ?? 0, life: of === null ? 0 : lives[of] }];
    }),
  }));
}

export interface Judged {
  readonly measure: Measure;
  readonly verdict: Verdict;
}

export const judge = (checkpoints: readonly Checkpoint[]): Judged[] =>
  measuresOf(checkpoints).map((measure) => ({ measure, verdict: verdictOf(measure) }));

/** A Markdown table. */
export function tableOf(judged: readonly Judged[]): string {
  const rows = judged.map(({ measure, verdict }) => {
    const { name, unit, bound } = measure;
    const { first, last, points, slope, error, result } = verdict;
    const shown = (value: number): string => (unit === 'bytes' ? `${(value / MEBIBYTE).toFixed(1)} MiB` : whole(value));
    return [
      name,
      shown(first),
      shown(last),
      String(points),
      `${shown(slope)} ± ${shown(error)}`,
      boundOf(measure, shown, bound.kind === 'count' ? bound.slack : bound.perHour),
      result,
    ];
  });
  const head = ['measure', 'first', 'last', 'points', 'per hour', 'bound', 'verdict'];
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function boundOf({ bound, points }: Measure, shown: (value: number) => string, value: number): string {
  if (bound.kind === 'trend') return `${shown(value)} per hour`;
  const kept = (points.at(-1)?.allowed ?? 0) - (points[0]?.allowed ?? 0);
  return `+ ${shown(value + kept)}`;
}

const whole = (value: number): string => String(Math.round(value * 10) / 10);

/** The values that change most between checkpoints, in one line. */
export function lineOf({ hours, samples }: Checkpoint): string {
  const value = (name: string): number => samples.find((sample) => sample.name === name)?.value ?? 0;
  const mebibytes = (name: string): string => (value(name) / MEBIBYTE).toFixed(1);
  return [
    `${(hours * 60).toFixed(1)} min`,
    `heap ${mebibytes('Worker: JavaScript heap in use')} MiB`,
    `workerd ${mebibytes('workerd: memory (PSS)')} MiB`,
    `runner ${mebibytes('runner: memory (PSS)')} MiB`,
    `processes ${value('Worker: processes')} + ${value('runner: processes')}`,
    `descriptors ${value('Worker: descriptors')} + ${value('runner: descriptors')}`,
    `rows of sessions ${value('sessions and their relics, all tables')}`,
    `alarms ${value('alarms')}`,
  ].join(', ');
}
