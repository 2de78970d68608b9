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
import type { RunnerClient } from '../../src/domain/ports/runner.ts';
import { createRunnerClient, type SingleRunner } from '../../src/executors/runner/client.ts';
import { createRunnerPool } from '../../src/executors/runner/pool.ts';
import { RunnerRecord, type RunnerReports } from '../../src/executors/runner/record.ts';
import {
  AT_ONCE,
  type Job,
  JOB_SECONDS,
  MOVE_AFTER_MS,
  NAMES,
  type Namespace,
  NAMESPACES,
  PLACES,
  report,
  RESTART_AFTER_MS,
  type Run,
} from './several-report.ts';

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
    const connect = (url: string, reports: RunnerReports): SingleRunner => {
      const client = clientOf(
        url,
        () => namespace,
        async (input, init) => {
          const answer = await fetch(input, init);
          if (answer.status === 429) refusals += 1;
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

  async function runJob(pool: RunnerClient, job: Job): Promise<void> {
    jobs.push(job);
    byId.set(job.id, job);
    try {
      const result = await pool.run(
        {
          id: job.id,
          session: job.session,
          kind: 'shell',
          code: `echo started; sleep ${JOB_SECONDS}`,
          runtime: null,
          inputs: {},
          limits: { timeoutMs: 120_000, memoryMb: null },
          movable: job.movable,
        },
        { signal: new AbortController().signal, output: () => (job.starts += 1) },
      );
      job.end = result.end;
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
          id: `ses_${namespace}_${at}/${next}`,
          session: `ses_${namespace}_${at}`,
          submittedAt: clock.now(),
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
  const seconds = (clock.now() - startedAt) / 1_000;
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
    const record = await clients.get(job.runners.at(-1) ?? '')?.record(job.id);
    const [from, to] = [record?.['started_at'], record?.['ended_at']];
    if (typeof from !== 'number' || typeof to !== 'number') continue;
    job.waitMs = from - job.submittedAt;
    job.placeMs = to - from;
  }
  const title = `${processes.length}${kills ? ', one killed' : ''}`;
  return { title, jobs, seconds, refusals, backMs };
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
