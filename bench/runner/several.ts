/**
 * Several runners behind one pool: jobs of three namespaces on real runner processes, through the client of the Worker.
 * Jobs per second, the wait of each namespace, how often a session stays on the runner with its files, and the loss of a
 * runner, each next to its bound.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

import { PACKAGE_ROOT } from '../../cli/project/folders.ts';
import { freePort } from '../../cli/system/services.ts';
import type { Clock } from '../../src/domain/ports/clock.ts';
import type { RunnerClient } from '../../src/domain/ports/runner.ts';
import { createRunnerClient, type SingleRunner } from '../../src/executors/runner/client.ts';
import { createRunnerPool } from '../../src/executors/runner/pool.ts';
import { RunnerRecord, type RunnerReports } from '../../src/executors/runner/record.ts';
import { FILE_NAME, SessionFile } from './session-file.ts';
import {
  type Job,
  JOB_SECONDS,
  KILL_AFTER_ENDS,
  MOVE_AFTER_MS,
  NAMES,
  type Namespace,
  NAMESPACES,
  PLACES,
  report,
  RESTART_AFTER_MS,
  type Run,
} from './several-report.ts';

/** Interval of the lines on stderr. */
const PROGRESS_MS = 5_000;

const SECRET = randomUUID().repeat(2);
const clock: Clock = {
  now: () => performance.timeOrigin + performance.now(),
  schedule(delayMs, callback) {
    const timer = setTimeout(callback, Math.max(0, delayMs));
    return () => clearTimeout(timer);
  },
};

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

/** The tables, for 1, 2 and 3 runners, and for 3 runners of which one is killed. Prints its progress to stderr. */
export async function measureSeveral(): Promise<string> {
  const runs: Run[] = [];
  for (const count of [1, 2, 3]) runs.push(await withRunners(count, false));
  runs.push(await withRunners(3, true));
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
  const title = `${processes.length}${kills ? ', one killed' : ''}`;
  const records = new Map(processes.map(({ url }) => [url, new RunnerRecord()]));
  const jobs: Job[] = [];
  const byId = new Map<string, Job>();
  const count = { ended: 0, refusals: 0, sentBytes: 0 };
  let restarted: { readonly url: string; readonly at: number } | null = null;
  let backMs: number | null = null;

  function poolOf(namespace: Namespace): RunnerClient {
    const connect = (url: string, reports: RunnerReports): SingleRunner => {
      const client = clientOf(
        url,
        () => namespace,
        async (input, init) => {
          const answer = await fetch(input, init);
          if (answer.status === 429) count.refusals += 1;
          if (init.method === 'PUT' && answer.ok && init.body instanceof Uint8Array)
            count.sentBytes += init.body.length;
          if (init.method === 'PUT' && answer.ok && url === restarted?.url) backMs ??= clock.now() - restarted.at;
          return answer;
        },
        reports,
      );
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

  async function runJob(pool: RunnerClient, job: Job, file: SessionFile | null): Promise<void> {
    jobs.push(job);
    byId.set(job.id, job);
    const { signal } = new AbortController();
    try {
      const result = await pool.run(
        {
          id: job.id,
          session: job.session,
          kind: 'shell',
          code: `${file === null ? '' : `printf x >> ${FILE_NAME}; `}sleep ${JOB_SECONDS}`,
          runtime: null,
          inputs: {},
          limits: { timeoutMs: 120_000, memoryMb: null },
          movable: job.movable,
          ...(file === null ? {} : { workspace: file.workspace() }),
        },
        { signal, output: () => undefined },
      );
      await file?.take(result, signal);
      job.end = result.end;
    } catch {
      job.end = 'refused';
    }
    job.endedAt = clock.now();
    count.ended += 1;
  }

  async function runSession(namespace: Namespace, at: number): Promise<void> {
    const { jobs: jobsOfSession, atOnce, everyMs, hasFile } = NAMESPACES[namespace];
    await sleep((everyMs * (at + 1)) / processes.length);
    const pool = poolOf(namespace);
    const file = hasFile ? new SessionFile() : null;
    let next = 0;
    async function slot(): Promise<void> {
      while (next < jobsOfSession) {
        next += 1;
        const job: Job = {
          namespace,
          id: `ses_${namespace}_${at}/${next}`,
          session: `ses_${namespace}_${at}`,
          submittedAt: clock.now(),
          endedAt: Number.NaN,
          movable: next % 2 === 0,
          runners: [],
          starts: 0,
          waitMs: Number.NaN,
          queuedMs: Number.NaN,
          placeMs: Number.NaN,
          end: 'refused',
        };
        await runJob(pool, job, file);
      }
    }
    await Promise.all(Array.from({ length: atOnce }, slot));
  }

  async function killOne(): Promise<void> {
    while (count.ended < KILL_AFTER_ENDS) await sleep(10);
    const [victim] = processes;
    if (victim === undefined) return;
    await victim.kill('SIGKILL');
    await sleep(RESTART_AFTER_MS);
    await victim.start();
    restarted = { url: victim.url, at: clock.now() };
  }

  const startedAt = clock.now();
  const total = NAMES.reduce((sum, name) => sum + NAMESPACES[name].sessions * NAMESPACES[name].jobs, 0);
  const progress = setInterval(() => {
    const seconds = ((clock.now() - startedAt) / 1_000).toFixed(0);
    console.error(
      `runners: ${title}; ${count.ended} of ${total * processes.length} jobs have ended after ${seconds} s`,
    );
  }, PROGRESS_MS);
  const sessions = NAMES.flatMap((name) =>
    Array.from({ length: NAMESPACES[name].sessions * processes.length }, (_, at) => runSession(name, at)),
  );
  await Promise.all([...sessions, ...(kills ? [killOne()] : [])]).finally(() => clearInterval(progress));
  const seconds = (clock.now() - startedAt) / 1_000;
  await readLedgers(processes, jobs);
  const { refusals, sentBytes } = count;
  return { title, runners: processes.length, jobs, seconds, refusals, sentBytes, kills, backMs };
}

/** Completes the jobs by the ledgers of the runners to which they were submitted. */
async function readLedgers(processes: readonly RunnerProcess[], jobs: readonly Job[]): Promise<void> {
  const clients = new Map(
    processes.map(({ url }) => [
      url,
      clientOf(
        url,
        () => null,
        (input, init) => fetch(input, init),
      ),
    ]),
  );
  for (const job of jobs) {
    for (const url of new Set(job.runners)) {
      const record = await clients.get(url)?.record(job.id);
      const [at, from, to] = [record?.['created_at'], record?.['started_at'], record?.['ended_at']];
      if (typeof from !== 'number') continue;
      job.starts += 1;
      if (url !== job.runners.at(-1) || typeof at !== 'number' || typeof to !== 'number') continue;
      job.waitMs = from - job.submittedAt;
      job.queuedMs = from - at;
      job.placeMs = to - from;
    }
  }
}

function clientOf(
  baseUrl: string,
  tenant: () => string | null,
  send: (input: string, init: RequestInit) => Promise<Response>,
  reports?: RunnerReports,
): SingleRunner {
  return createRunnerClient({
    baseUrl,
    key: { id: null, secret: SECRET },
    clock,
    tenant,
    newNonce: randomUUID,
    moveAfterMs: MOVE_AFTER_MS,
    fetch: send,
    ...(reports === undefined ? {} : { reports }),
  });
}
