/** What the measurement of several runners sends, and its tables. */
import type { JobResult } from '../../src/domain/ports/runner.ts';
import { percentile, table } from '../report.ts';

/** Places of a runner. */
export const PLACES = 4;
export const JOB_SECONDS = 0.1;
/** Jobs of one session that are submitted at once. */
export const AT_ONCE = 2;
export const RESTART_AFTER_MS = 2_000;
export const MOVE_AFTER_MS = 1_000;
/** Sessions, jobs of each, and the pause between the beginnings of sessions. */
export const NAMESPACES = {
  a: { sessions: 44, jobs: 20, everyMs: 0 },
  b: { sessions: 10, jobs: 10, everyMs: 0 },
  c: { sessions: 20, jobs: 1, everyMs: 1_000 },
} as const;
export type Namespace = keyof typeof NAMESPACES;
export const NAMES = Object.keys(NAMESPACES) as Namespace[];

export interface Job {
  readonly namespace: Namespace;
  readonly session: string;
  readonly movable: boolean;
  /** URLs of the runners to which it was submitted, in order. */
  readonly runners: string[];
  /** Starts of its program that were reported. */
  starts: number;
  readonly id: string;
  readonly submittedAt: number;
  /** From the submission until the job had a place. */
  waitMs: number;
  /** From there to its end, by the ledger of its runner. */
  placeMs: number;
  end: JobResult['end'] | 'refused';
}

export interface Run {
  readonly title: string;
  readonly jobs: readonly Job[];
  readonly seconds: number;
  readonly refusals: number;
  /** Until the runner that was killed and started again had work; null: none was killed. */
  readonly backMs: number | null;
}

/** The tables of all runs. */
export function report(runs: readonly Run[]): string {
  const total = NAMES.reduce((sum, name) => sum + NAMESPACES[name].sessions * NAMESPACES[name].jobs, 0);
  const head = NAMES.map((name) => `wait of ${name}, p50 / p99`);
  return [
    `${total} jobs (shell in bubblewrap, \`sleep ${JOB_SECONDS}\`) of three namespaces, through the Worker's client: ${NAMES.map((name) => describe(name)).join('; ')}.`,
    `Each runner is a process with ${PLACES} places and a queue of 64. *Wait* is the time from the submission until the job has a place, including the time in which all runners are full.`,
    'By [fair capacity](runner.md#fair-capacity), a lone job waits for at most one job of each other namespace; *bound* is twice the p99 of the time for which jobs hold their place, from the start of the sandbox to the end.',
    '*Stays* is the share of jobs that ran on the runner of the previous job of their session.',
    '',
    table(
      ['runners', 'jobs/s', ...head, 'bound for c', 'stays', '429 per job', 'jobs of a runner', 'ends'],
      runs.map(({ title, jobs, seconds, refusals }) => [
        title,
        (jobs.length / seconds).toFixed(1),
        ...NAMES.map((name) => waits(jobs.filter(({ namespace }) => namespace === name))),
        `${(2 * percentile(placeTimes(jobs), 0.99)).toFixed(0)} ms`,
        `${(100 * stays(jobs)).toFixed(0)} %`,
        (refusals / jobs.length).toFixed(2),
        perRunner(jobs),
        ends(jobs),
      ]),
    ),
    '',
    `A runner is killed with SIGKILL after 300 ends, and started again after ${RESTART_AFTER_MS / 1_000} s. Every second job is idempotent; the others are unsafe. Idempotent jobs move after ${MOVE_AFTER_MS / 1_000} s (5 s in production).`,
    '',
    table(
      [
        'runners',
        'ends of idempotent jobs',
        'ends of unsafe jobs',
        'unsafe jobs that started twice',
        'moved',
        'it had work again after',
      ],
      runs
        .slice(-1)
        .map(({ title, jobs, backMs }) => [
          title,
          ends(jobs.filter(({ movable }) => movable)),
          ends(jobs.filter(({ movable }) => !movable)),
          String(jobs.filter(({ movable, starts }) => !movable && starts > 1).length),
          String(jobs.filter(({ movable, runners }) => movable && new Set(runners).size > 1).length),
          backMs === null ? '–' : `${(backMs / 1_000).toFixed(1)} s`,
        ]),
    ),
  ].join('\n');
}

function describe(name: Namespace): string {
  const { sessions, jobs, everyMs } = NAMESPACES[name];
  const when = everyMs === 0 ? `at once, ${AT_ONCE} jobs of a session at a time` : `one every ${everyMs} ms`;
  return `${name} has ${sessions} sessions with ${jobs} job${jobs === 1 ? '' : 's'} (${when})`;
}

function finite(values: readonly number[]): number[] {
  return values.filter((value) => Number.isFinite(value));
}

function placeTimes(jobs: readonly Job[]): number[] {
  return jobs.filter(({ end, starts }) => end === 'exited' && starts === 1).map(({ placeMs }) => placeMs);
}

function waits(jobs: readonly Job[]): string {
  const samples = finite(jobs.map(({ waitMs }) => waitMs));
  return `${percentile(samples, 0.5).toFixed(0)} / ${percentile(samples, 0.99).toFixed(0)} ms`;
}

function ends(jobs: readonly Job[]): string {
  return Object.entries(Object.groupBy(jobs, ({ end }) => end))
    .map(([end, list]) => `${end} ${list?.length ?? 0}`)
    .join(', ');
}

/** The least and the most. */
function perRunner(jobs: readonly Job[]): string {
  const counts = [...Map.groupBy(jobs, ({ runners }) => runners.at(-1)).values()].map(({ length }) => length);
  return `${Math.min(...counts)} to ${Math.max(...counts)}`;
}

function stays(jobs: readonly Job[]): number {
  const last = new Map<string, string>();
  let same = 0;
  let all = 0;
  for (const { session, runners } of jobs) {
    const runner = runners.at(-1);
    if (runner === undefined) continue;
    const before = last.get(session);
    last.set(session, runner);
    if (before === undefined) continue;
    all += 1;
    if (before === runner) same += 1;
  }
  return same / all;
}
