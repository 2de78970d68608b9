/** Three real runner processes behind one pool, and the loss of one while they work (R7, S7, C7). */
import { createHash, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { LIGHT_SANDBOX } from '../../container-runner/test/support/levels.ts';
import { launchRunner } from '../../container-runner/test/support/runner-process.ts';
import type { RunnerProcess } from '../../container-runner/test/support/runner-process.ts';
import { SECRET } from '../../container-runner/test/support/test-runner.ts';
import { freePort } from '../../cli/system/services.ts';
import { limits } from '../../src/domain/limits.ts';
import type { JobResult, JobWorkspace, RunnerClient, RunnerJob } from '../../src/domain/ports/runner.ts';
import { createRunnerClient, type SingleRunner } from '../../src/executors/runner/client.ts';
import { createRunnerPool } from '../../src/executors/runner/pool.ts';
import { RunnerRecord } from '../../src/executors/runner/record.ts';
import { eventually } from '../support/eventually.ts';

/** Added to the real time. */
let ahead = 0;
const clock = {
  now: () => Date.now() + ahead,
  schedule(delayMs: number, callback: () => void) {
    const timer = setTimeout(callback, delayMs);
    return () => clearTimeout(timer);
  },
};

interface Place {
  readonly port: number;
  readonly url: string;
  readonly stateDir: string;
  process: RunnerProcess;
}

let places: Place[];
const records = new Map<string, RunnerRecord>();
/** The runners to which each job was submitted. */
const sent = new Map<string, string[]>();

function launch(port: number, stateDir: string): RunnerProcess {
  return launchRunner(stateDir, {
    ...LIGHT_SANDBOX,
    RUNNER_PORT: String(port),
    RUNNER_MAX_JOBS: '2',
    RUNNER_DRAIN_SECONDS: '0',
  });
}

beforeAll(async () => {
  places = await Promise.all(
    [1, 2, 3].map(async () => {
      const port = await freePort();
      const stateDir = mkdtempSync(join(tmpdir(), 'cortex-several-'));
      return { port, url: `http://127.0.0.1:${port}`, stateDir, process: launch(port, stateDir) };
    }),
  );
  await Promise.all(places.map(({ process }) => process.ready()));
});
afterAll(async () => {
  for (const { process, stateDir } of places) {
    process.child.kill('SIGTERM');
    await process.ended;
    rmSync(stateDir, { recursive: true, force: true });
  }
});

function clientOf(url: string): SingleRunner {
  return createRunnerClient({
    baseUrl: url,
    key: { id: null, secret: SECRET },
    clock,
    newNonce: randomUUID,
    moveAfterMs: 500,
    fetch: (input, init) => fetch(input, init),
  });
}

/** The pool of one session, which shares what is known about the runners. */
function poolOf(): RunnerClient {
  return createRunnerPool({
    runners: places.map(({ url }) => ({ url, labels: [] })),
    clock,
    random: Math.random,
    recordOf: (url) => {
      const record = records.get(url) ?? new RunnerRecord();
      records.set(url, record);
      return record;
    },
    connect: (url) => {
      const client = clientOf(url);
      return {
        ...client,
        run: (job, observe) => {
          sent.set(job.id, [...(sent.get(job.id) ?? []), url]);
          return client.run(job, observe);
        },
      };
    },
  });
}

function workspaceOf(session: string): JobWorkspace {
  const bytes = new TextEncoder().encode(`files of ${session}\n`);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const file = { path: 'own.txt', sha256, size: bytes.byteLength, executable: false, modifiedAt: Date.now() };
  return { files: [file], maxBytes: 1_000_000, read: () => Promise.resolve(bytes) };
}

interface Submitted {
  readonly id: string;
  readonly session: string;
  readonly movable: boolean;
  readonly ended: Promise<JobResult>;
}

function submit(pool: RunnerClient, session: string, movable: boolean, seconds: number): Submitted {
  const id = `${session}/${randomUUID()}`;
  const job: RunnerJob = {
    id,
    session,
    kind: 'shell',
    code: `cat own.txt; sleep ${seconds}; echo done`,
    runtime: null,
    inputs: {},
    limits: { timeoutMs: 120_000, memoryMb: null },
    movable,
    workspace: workspaceOf(session),
  };
  const ended = pool.run(job, { signal: new AbortController().signal, output: () => undefined });
  return { id, session, movable, ended };
}

test('[R7] [S7] [C7] a runner is killed while all work: jobs settle, unsafe ones run once, files are right, and it gets work again', async () => {
  const sessions = Array.from({ length: 6 }, (_, at) => `ses_${at}`);
  const pools = new Map(sessions.map((session) => [session, poolOf()]));
  const poolFor = (session: string): RunnerClient => pools.get(session) ?? poolOf();
  // places and queues of all runners are in use
  const jobs = sessions.flatMap((session) =>
    [true, false, true, false].map((movable) => submit(poolFor(session), session, movable, 1)),
  );
  await eventually(() => expect(sent.size).toBe(jobs.length));
  const victim = places.find(({ url }) => sent.get(jobs[0]?.id ?? '')?.[0] === url);
  if (victim === undefined) throw new Error('no runner has the first job');
  await Promise.race(jobs.map(({ ended }) => ended));
  victim.process.child.kill('SIGKILL');
  await victim.process.ended;

  // others keep working, and the session of the lost runner has its files elsewhere
  const next = await submit(poolOf(), 'ses_0', true, 0).ended;
  expect(next).toMatchObject({ end: 'exited', stdout: 'files of ses_0\ndone\n' });

  victim.process = launch(victim.port, victim.stateDir);
  await victim.process.ready();
  const ends = await Promise.all(jobs.map(async (job) => ({ ...job, ...(await job.ended) })));
  for (const { id, session, movable, end, stdout } of ends) {
    if (movable) expect({ end, stdout }, id).toEqual({ end: 'exited', stdout: `files of ${session}\ndone\n` });
    else expect(end, id).toMatch(/^(exited|lost)$/);
    const runners = new Set(sent.get(id));
    if (!movable) expect([...runners], id).toHaveLength(1);
    else expect(runners.size, id).toBeLessThanOrEqual(2);
  }
  expect(ends.some(({ end }) => end === 'lost')).toBe(true);
  // a job that was lost is known, so that nobody runs it again
  for (const { id, end } of ends) {
    if (end !== 'lost') continue;
    expect(await clientOf(victim.url).record(id)).toMatchObject({ state: 'ended', end: 'lost' });
  }

  // After a lost connection, a runner is not chosen for a while.
  ahead = limits.runnerDownMs;
  await eventually(async () => {
    const session = `ses_again_${randomUUID()}`;
    const again = [1, 2, 3, 4].map(() => submit(poolOf(), session, true, 0));
    await Promise.all(again.map(({ ended }) => ended));
    expect(again.flatMap(({ id }) => sent.get(id))).toContain(victim.url);
  });
});
