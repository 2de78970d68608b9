/**
 * Several runners behind one pool: 1,000 jobs of three namespaces on real runner processes, through the client of the Worker.
 * The wait of each namespace, jobs per second, how often a session stays on its runner, and the loss of a runner.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { PACKAGE_ROOT } from '../../cli/project/folders.ts';
import { freePort } from '../../cli/system/services.ts';
import type { Clock } from '../../src/domain/ports/clock.ts';
import type { JobResult, RunnerClient } from '../../src/domain/ports/runner.ts';
import { createRunnerClient, type SingleRunner } from '../../src/executors/runner/client.ts';
import { createRunnerPool } from '../../src/executors/runner/pool.ts';
import { RunnerRecord } from '../../src/executors/runner/record.ts';
import { percentile, table } from '../report.ts';

const PLACES = 4;
const JOB_SECONDS = 0.1;
/** Jobs of one session that are submitted at once: an agent's slots. */
const AT_ONCE = 2;
const SECRET = randomUUID().repeat(2);
const RESTART_AFTER_MS = 2_000;
const MOVE_AFTER_MS = 1_000;
/** Sessions, jobs of each, and the pause between the beginnings of sessions. */
const NAMESPACES = {
  a: { sessions: 44, jobs: 20, everyMs: 0 },
  b: { sessions: 10, jobs: 10, everyMs: 0 },
  c: { sessions: 20, jobs: 1, everyMs: 1_000 },
} as const;
type Namespace = keyof typeof NAMESPACES;
const NAMES = Object.keys(NAMESPACES) as Namespace[];

const clock: Clock = {
  now: () => performance.timeOrigin + performance.now(),
  schedule(delayMs, callback) {
    const timer = setTimeout(callback, Math.max(0, delayMs));
    return () => clearTimeout(timer);
  },
};

interface Job {
  readonly namespace: Namespace;
  readonly session: string;
  readonly movable: boolean;
  /** URLs of the runners to which it was submitted, in order. */
  readonly runners: string[];
  /** Starts of its program that were reported. */
  starts: number;
  /** From the submission to the first byte of the program's output. */
  waitMs: number;
  /** From there to its end. */
  placeMs: number;
  end: JobResult['end'] | 'refused';
}

interface Run {
  readonly title: string;
  readonly jobs: readonly Job[];
  readonly seconds: number;
  readonly refusals: number;
  /** Until the runner that was killed and started again had work; null: none was killed. */
  readonly backMs: number | null;
}

class RunnerProcess {
  readonly url: string;
  readonly #port: number;
  readonly #stateDir = mkdtempSync(join(tmpdir(), 'cortex-bench-several-'));
  #child: ChildProcess | null = null;

  constructor(port: number) {
    this.#port = port;
    this.url = `http://127.0.0.1:${port}`;
  }

  /** @throws if the sandbox is unavailable */
  async start(): Promise<void> {
    const child = spawn(process.execPath, ['container-runner/main.ts'], {
      cwd: PACKAGE_ROOT,
      env: {
        PATH: process.env['PATH'],
        RUNNER_SECRET: SECRET,
        RUNNER_PORT: String(this.#port),
        RUNNER_SANDBOX: 'bubblewrap',
        RUNNER_WARM: '2',
        RUNNER_MAX_JOBS: String(PLACES),
        RUNNER_DRAIN_SECONDS: '0',
        RUNNER_LOG: 'silent',
        CORTEX_STATE_DIR: this.#stateDir,
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#child = child;
    await once(createInterface(child.stdout), 'line');
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
  }

  async close(): Promise<void> {
    await this.kill('SIGTERM');
    rmSync(this.#stateDir, { recursive: true, force: true });
  }
}

/** The tables, for 1, 2 and 4 runners, and for 4 runners of which one is killed. */
export async function measureSeveral(): Promise<string> {
  const runs: Run[] = [];
  for (const count of [1, 2, 4]) runs.push(await withRunners(count, false));
  runs.push(await withRunners(4, true));
  return report(runs);
}

async function withRunners(count: number, kills: boolean): Promise<Run> {
  const processes: RunnerProcess[] = [];
  try {
    for (let at = 0; at < count; at += 1) {
      const started = new RunnerProcess(await freePort());
      processes.push(started);
      await started.start();
    }
    return await measure(processes, kills);
  } finally {
    await Promise.all(processes.map((one) => one.close()));
  }
}

async function measure(processes: readonly RunnerProcess[], kills: boolean): Promise<Run> {
  const records = new Map(processes.map(({ url }) => [url, new RunnerRecord()]));
  const jobs: Job[] = [];
  const byId = new Map<string, Job>();
  let refusals = 0;
  const ended = { count: 0 };
  let restarted: { readonly url: string; readonly at: number } | null = null;
  let backMs: number | null = null;

  function poolOf(namespace: Namespace): RunnerClient {
    const connect = (url: string, reports: Parameters<typeof createRunnerClient>[0]['reports']): SingleRunner => {
      const client = createRunnerClient({
        baseUrl: url,
        key: { id: null, secret: SECRET },
        clock,
        tenant: () => namespace,
        newNonce: randomUUID,
        moveAfterMs: MOVE_AFTER_MS,
        ...(reports === undefined ? {} : { reports }),
        fetch: async (input, init) => {
          const answer = await fetch(input, init);
          if (answer.status === 429) refusals += 1;
          if (init.method === 'PUT' && answer.ok && url === restarted?.url) backMs ??= clock.now() - restarted.at;
          return answer;
        },
      });
      return {
        ...client,
        run: (job, observe) => {
          byId.get(job.id)?.runners.push(url);
          return client.run(job, observe);
        },
      };
    };
    const recordOf = (url: string): RunnerRecord => records.get(url) ?? new RunnerRecord();
    const runners = processes.map(({ url }) => ({ url, labels: [] }));
    return createRunnerPool({ runners, clock, random: Math.random, recordOf, connect });
  }

  async function runJob(pool: RunnerClient, job: Job): Promise<void> {
    const id = `${job.session}/${jobs.length}`;
    jobs.push(job);
    byId.set(id, job);
    const submittedAt = clock.now();
    let startedAt = submittedAt;
    try {
      const result = await pool.run(
        {
          id,
          session: job.session,
          kind: 'shell',
          code: `echo started; sleep ${JOB_SECONDS}`,
          runtime: null,
          inputs: {},
          limits: { timeoutMs: 120_000, memoryMb: null },
          movable: job.movable,
        },
        {
          signal: new AbortController().signal,
          output: () => {
            job.starts += 1;
            startedAt = clock.now();
            job.waitMs = startedAt - submittedAt;
          },
        },
      );
      job.end = result.end;
      job.placeMs = clock.now() - startedAt;
    } catch {
      job.end = 'refused';
    }
    ended.count += 1;
  }

  async function runSession(namespace: Namespace, at: number): Promise<void> {
    const { jobs: count, everyMs } = NAMESPACES[namespace];
    await new Promise((resolve) => setTimeout(resolve, 500 * Number(everyMs > 0) + at * everyMs));
    const pool = poolOf(namespace);
    let next = 0;
    async function slot(): Promise<void> {
      while (next < count) {
        next += 1;
        const movable = next % 2 === 0;
        await runJob(pool, {
          namespace,
          session: `ses_${namespace}_${at}`,
          movable,
          runners: [],
          starts: 0,
          waitMs: Number.NaN,
          placeMs: Number.NaN,
          end: 'refused',
        });
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, slot));
  }

  async function killOne(): Promise<void> {
    while (ended.count < 300) await new Promise((resolve) => setTimeout(resolve, 10));
    const [victim] = processes;
    if (victim === undefined) return;
    await victim.kill('SIGKILL');
    await new Promise((resolve) => setTimeout(resolve, RESTART_AFTER_MS));
    await victim.start();
    restarted = { url: victim.url, at: clock.now() };
  }

  const startedAt = clock.now();
  const sessions = NAMES.flatMap((name) =>
    Array.from({ length: NAMESPACES[name].sessions }, (_, at) => runSession(name, at)),
  );
  await Promise.all([...sessions, ...(kills ? [killOne()] : [])]);
  const title = `${processes.length}${kills ? ', one killed' : ''}`;
  return { title, jobs, seconds: (clock.now() - startedAt) / 1_000, refusals, backMs };
}

function report(runs: readonly Run[]): string {
  const total = NAMES.reduce((sum, name) => sum + NAMESPACES[name].sessions * NAMESPACES[name].jobs, 0);
  const head = NAMES.map((name) => `wait of ${name}, p50 / p99`);
  return [
    `${total} jobs (shell in bubblewrap, \`sleep ${JOB_SECONDS}\`) of three namespaces, through the Worker's client: ${NAMES.map((name) => describe(name)).join('; ')}.`,
    `Each runner is a process with ${PLACES} places and a queue of 64. *Wait* is the time from the submission to the first byte of output, including the time in which all runners are full.`,
    'By [fair capacity](runner.md#fair-capacity), a lone job waits for at most one job of each other namespace; *bound* is twice the p99 of the time for which jobs hold their place.',
    '*Stays* is the share of jobs that ran on the runner of the previous job of their session.',
    '',
    table(
      ['runners', 'jobs/s', ...head, 'bound for c', 'stays', '429 per job', 'ends'],
      runs.map(({ title, jobs, seconds, refusals }) => [
        title,
        (jobs.length / seconds).toFixed(1),
        ...NAMES.map((name) => waits(jobs.filter(({ namespace }) => namespace === name))),
        `${(2 * percentile(placeTimes(jobs), 0.99)).toFixed(0)} ms`,
        `${(100 * stays(jobs)).toFixed(0)} %`,
        (refusals / jobs.length).toFixed(2),
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
