/** What the measurement of several runners sends, and its tables. */
import { hasCapacity } from '../../container-runner/fair-share.ts';
import type { JobResult } from '../../src/domain/ports/runner.ts';
import { percentile, table } from '../report.ts';

/** Places of a runner. */
export const PLACES = 4;
export const JOB_SECONDS = 0.2;
export const RESTART_AFTER_MS = 2_000;
export const KILL_AFTER_ENDS = 200;
export const MOVE_AFTER_MS = 1_000;
/** The file of a session of a namespace with files; each of its jobs changes it. */
export const FILE_BYTES = 1_048_576;
/** Sessions for each runner, jobs of each, how many of them are submitted at once, and the pause between the sessions. */
export const NAMESPACES = {
  a: { sessions: 16, jobs: 6, atOnce: 2, everyMs: 0, hasFile: false },
  b: { sessions: 8, jobs: 12, atOnce: 1, everyMs: 0, hasFile: true },
  c: { sessions: 8, jobs: 1, atOnce: 1, everyMs: 1_500, hasFile: false },
} as const;
export type Namespace = keyof typeof NAMESPACES;
export const NAMES = Object.keys(NAMESPACES) as Namespace[];

export interface Job {
  readonly namespace: Namespace;
  readonly session: string;
  readonly movable: boolean;
  /** URLs of the runners to which it was submitted, in order. */
  readonly runners: string[];
  readonly id: string;
  readonly submittedAt: number;
  endedAt: number;
  /** Runners that started its program, by their ledgers. */
  starts: number;
  /** From the submission until the job had a place. */
  waitMs: number;
  /** The part of it in which the job was in the queue of its runner. */
  queuedMs: number;
  /** From the place to its end, by the ledger of its runner. */
  placeMs: number;
  end: JobResult['end'] | 'refused';
}

export interface Run {
  readonly title: string;
  readonly runners: number;
  readonly jobs: readonly Job[];
  readonly seconds: number;
  readonly refusals: number;
  /** Bytes of files that were sent to runners. */
  readonly sentBytes: number;
  /** One of them was killed. */
  readonly kills: boolean;
  /** Until the runner that was killed and started again had work; null: it had none. */
  readonly backMs: number | null;
}

/** The tables of all runs. */
export function report(runs: readonly Run[]): string {
  const total = runs.reduce((sum, { jobs }) => sum + jobs.length, 0);
  const places = placesOf(['a', 'b']);
  return [
    `${total} jobs (shell in bubblewrap, \`sleep ${JOB_SECONDS}\`) of three namespaces, through the Worker's client. Each runner is a process with`,
    `${PLACES} places and a queue of 64. The load grows with the runners; for each of them:`,
    '',
    ...NAMES.map((name) => `- ${describe(name)}`),
    '',
    '### Throughput',
    '',
    `By [fair capacity](runner.md#fair-capacity), a and b together hold at most ${places} of the ${PLACES} places of a runner. *Bound* is these places`,
    `divided by ${JOB_SECONDS} s, as if starting a sandbox cost nothing.`,
    '',
    table(
      [
        'runners',
        'jobs',
        'jobs/s',
        'bound',
        'of the bound',
        'time in a place, p50 / p99',
        '429 per job',
        'jobs of a runner',
      ],
      runs.map(({ title, runners, jobs, seconds, refusals }) => {
        const perSecond = jobs.length / seconds;
        const bound = (runners * places) / JOB_SECONDS;
        return [
          title,
          String(jobs.length),
          perSecond.toFixed(1),
          bound.toFixed(1),
          percent(perSecond / bound),
          quantiles(placeTimes(jobs)),
          (refusals / jobs.length).toFixed(2),
          perRunner(jobs),
        ];
      }),
    ),
    '',
    '### Fair sharing',
    '',
    '*Wait* is the time from the submission until the job has a place, including the requests and the time in which all',
    'runners are full. *In the queue* is the part between the acceptance by the runner and the place. A lone job waits there for at',
    'most one job of each other namespace: *bound* is twice the p99 of the time in a place. *Share of b* is its share of the ends of',
    'a and b until one of them has ended, although a has more jobs at once; equal shares are 50 %.',
    '',
    table(
      [
        'runners',
        'wait of a, p50 / p99',
        'wait of b',
        'wait of c',
        'c in the queue',
        'bound',
        'later than the bound',
        'share of b',
      ],
      runs.map(({ title, jobs }) => {
        const bound = 2 * percentile(placeTimes(jobs), 0.99);
        const queued = finite(jobs.filter(({ namespace }) => namespace === 'c').map(({ queuedMs }) => queuedMs));
        return [
          title,
          ...NAMES.map((name) =>
            quantiles(jobs.filter(({ namespace }) => namespace === name).map(({ waitMs }) => waitMs)),
          ),
          quantiles(queued),
          `${bound.toFixed(0)} ms`,
          `${queued.filter((ms) => ms > bound).length} of ${queued.length}`,
          percent(shareOfB(jobs)),
        ];
      }),
    ),
    '',
    '### Files',
    '',
    `Each job of b changes the file of its session. *Stays* is the share of jobs on the runner of the previous job of their session,`,
    'and *sent* what the runners were sent, without what they returned. A session that never moves sends its file once, which is',
    'the bound; *spread* is what random choices would send on average.',
    '',
    table(
      ['runners', 'a stays', 'b stays', 'b sent', 'bound', 'spread'],
      runs.map(({ title, runners, jobs, sentBytes }) => {
        const withFile = jobs.filter(({ namespace }) => namespace === 'b');
        const sessions = new Set(withFile.map(({ session }) => session)).size;
        const spread = sessions + (withFile.length - sessions) * (1 - 1 / runners);
        return [
          title,
          percent(stays(jobs.filter(({ namespace }) => namespace === 'a'))),
          percent(stays(withFile)),
          megabytes(sentBytes),
          megabytes(sessions * FILE_BYTES),
          megabytes(spread * FILE_BYTES),
        ];
      }),
    ),
    '',
    '### Loss of a runner',
    '',
    `A runner is killed with SIGKILL after ${KILL_AFTER_ENDS} ends, and started again after ${RESTART_AFTER_MS / 1_000} s. Every second job is idempotent; the`,
    `others are unsafe. Idempotent jobs move after ${MOVE_AFTER_MS / 1_000} s (5 s in production). An unsafe job that was on the runner is *lost*. The`,
    'ledgers of all runners tell how often a job started.',
    '',
    table(
      [
        'runners',
        'without an end',
        'ends of idempotent jobs',
        'ends of unsafe jobs',
        'unsafe, started twice',
        'idempotent, moved / started twice',
        'it had work again after',
      ],
      runs
        .filter(({ kills }) => kills)
        .map(({ title, jobs, backMs }) => {
          const movable = jobs.filter((job) => job.movable);
          const unsafe = jobs.filter((job) => !job.movable);
          return [
            title,
            `${jobs.filter(({ endedAt }) => Number.isNaN(endedAt)).length} (bound: 0)`,
            ends(movable),
            ends(unsafe),
            `${twice(unsafe)} (bound: 0)`,
            `${movable.filter(({ runners }) => new Set(runners).size > 1).length} / ${twice(movable)}`,
            backMs === null ? '–' : `${(backMs / 1_000).toFixed(1)} s`,
          ];
        }),
    ),
  ].join('\n');
}

/** Places of a runner that these namespaces can hold together, by the runner's own rule. */
function placesOf(names: readonly Namespace[]): number {
  const held = new Map<Namespace, number>();
  let used = 0;
  for (let grew = true; grew;) {
    grew = false;
    for (const name of names) {
      const own = held.get(name) ?? 0;
      if (!hasCapacity(name, { own, used, most: PLACES })) continue;
      held.set(name, own + 1);
      used += 1;
      grew = true;
    }
  }
  return used;
}

function describe(name: Namespace): string {
  const { sessions, jobs, atOnce, everyMs, hasFile } = NAMESPACES[name];
  const when = everyMs === 0 ? `${atOnce} at a time` : `a session begins every ${everyMs} ms divided by the runners`;
  const file = hasFile ? `, with a file of ${FILE_BYTES / 1_048_576} MiB` : '';
  return `${name}: ${sessions} sessions${file}, ${jobs} job${jobs === 1 ? '' : 's'} each, ${when}`;
}

function finite(values: readonly number[]): number[] {
  return values.filter((value) => Number.isFinite(value));
}

function placeTimes(jobs: readonly Job[]): number[] {
  return finite(jobs.filter(({ end, starts }) => end === 'exited' && starts === 1).map(({ placeMs }) => placeMs));
}

function quantiles(values: readonly number[]): string {
  const samples = finite(values);
  return `${percentile(samples, 0.5).toFixed(0)} / ${percentile(samples, 0.99).toFixed(0)} ms`;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(0)} %`;
}

function megabytes(bytes: number): string {
  return `${(bytes / 1_048_576).toFixed(0)} MiB`;
}

function ends(jobs: readonly Job[]): string {
  return Object.entries(Object.groupBy(jobs, ({ end }) => end))
    .map(([end, list]) => `${end} ${list?.length ?? 0}`)
    .join(', ');
}

function twice(jobs: readonly Job[]): number {
  return jobs.filter(({ starts }) => starts > 1).length;
}

/** The least and the most. */
function perRunner(jobs: readonly Job[]): string {
  const counts = [...Map.groupBy(jobs, ({ runners }) => runners.at(-1)).values()].map(({ length }) => length);
  return `${Math.min(...counts)} to ${Math.max(...counts)}`;
}

function shareOfB(jobs: readonly Job[]): number {
  const endsOf = (name: Namespace): number[] =>
    finite(jobs.filter(({ namespace }) => namespace === name).map(({ endedAt }) => endedAt));
  const [a, b] = [endsOf('a'), endsOf('b')];
  const until = Math.min(Math.max(...a), Math.max(...b));
  const [ofA, ofB] = [a, b].map((times) => times.filter((at) => at <= until).length);
  return (ofB ?? 0) / ((ofA ?? 0) + (ofB ?? 0));
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
