/** Work that no runner has accepted waits for one; work that may have been sent does not (S7, R7). */
import { randomUUID } from 'node:crypto';

import { beforeEach, describe, expect, test } from 'vitest';

import { limits } from '../../../src/domain/limits.ts';
import type { JobResult, RelicAnswer, RunnerClient, RunnerJob } from '../../../src/domain/ports/runner.ts';
import { pythonExecutor } from '../../../src/executors/python.ts';
import { createRunnerClient, type SingleRunner } from '../../../src/executors/runner/client.ts';
import { createRunnerPool } from '../../../src/executors/runner/pool.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { callOf, contextOf, errorOf } from '../support.ts';
import { CONTAINER_RELIC, relicOf } from '../../support/definitions.ts';
import { eventually } from '../../support/eventually.ts';

/** The platform's error for a refused connection and for a lost answer. */
const LOST = 'Network connection lost.';
const HEALTHY = { status: 'healthy' };

let clock: VirtualClock;
/** The answer of `/health`; null = no connection. */
let health: object | null;
/** The answer to a job or a call. */
let answer: () => Response;
let sent: string[];
let waits: string[];
let pool: RunnerClient;

beforeEach(() => {
  clock = new VirtualClock();
  health = HEALTHY;
  answer = () => Response.json({ state: 'ended' });
  sent = [];
  waits = [];
  pool = createRunnerPool({
    runners: [{ url: 'http://runner.example', labels: [] }],
    clock,
    connect,
  });
});

function connect(baseUrl: string): SingleRunner {
  return createRunnerClient({
    baseUrl,
    key: { id: null, secret: 's'.repeat(32) },
    clock,
    newNonce: randomUUID,
    fetch: (input, init) => Promise.resolve().then(() => respond(new URL(input).pathname, init)),
  });
}

function respond(path: string, { method = 'GET' }: RequestInit): Response {
  if (path === '/health' && health !== null) return Response.json(health);
  if (path === '/health' || health === null) throw new Error(LOST);
  if (path.startsWith('/events')) return new Response(new ReadableStream());
  if (method === 'GET') return Response.json({ state: 'ended', end: 'exited', exit_code: 0, stdout: '42' });
  sent.push(`${method} ${path.split('/')[1] ?? ''}`);
  return answer();
}

const JOB: RunnerJob = {
  id: 'ses_1/1/0/0/1',
  session: 'ses_1',
  kind: 'python',
  code: 'print(42)',
  runtime: 'python3',
  inputs: {},
  limits: { timeoutMs: 60_000, memoryMb: null },
  movable: false,
};

interface Watched<T> {
  readonly stop: AbortController;
  result: T | null;
  fault: unknown;
}

function watched<T>(
  start: (observe: { signal: AbortSignal; waiting: (reason: string) => void }) => Promise<T>,
): Watched<T> {
  const stop = new AbortController();
  const state: Watched<T> = { stop, result: null, fault: null };
  void start({ signal: stop.signal, waiting: (reason) => waits.push(reason) }).then(
    (result) => (state.result = result),
    (fault: unknown) => (state.fault = fault),
  );
  return state;
}

const start = (job: RunnerJob = JOB): Watched<JobResult> =>
  watched((observe) => pool.run(job, { ...observe, output: () => undefined }));
const call = (): Watched<RelicAnswer> =>
  watched((observe) =>
    pool.callRelic(
      {
        space: 'ses_1',
        relic: relicOf(CONTAINER_RELIC),
        method: 'POST',
        path: '/x',
        body: {},
        timeoutMs: 60_000,
      },
      observe,
    ),
  );

/** Advances the clock in steps of a second until the condition is true. */
async function untilSo(check: () => void): Promise<void> {
  await eventually(() => {
    clock.advance(1_000);
    check();
  });
}

describe.each(['one runner', 'several'])('%s', (which) => {
  beforeEach(() => {
    if (which === 'one runner') return;
    const runners = ['a', 'b', 'c'].map((name) => ({ url: `http://${name}.example`, labels: ['docker'] }));
    pool = createRunnerPool({ runners, clock, connect });
  });

  test('[S7] an unsafe job waits until a runner answers, and runs once', async () => {
    health = null;
    const running = start();
    await untilSo(() => expect(waits).toEqual(['the runner does not answer']));
    await untilSo(() => expect(clock.now()).toBeGreaterThan(1_020_000));
    expect(sent).toEqual([]);
    health = HEALTHY;
    await untilSo(() => expect(running.result).toMatchObject({ end: 'exited', stdout: '42' }));
    expect(sent).toEqual(['PUT jobs']);
  });

  test('[R7] a runner that is starting, or that answers 503, has not accepted the job', async () => {
    const image = (name: string, state: string): object => ({ name, state, elapsed_ms: 1 });
    const images = [image('python3', 'building'), image('shell', 'ready'), image('node', 'waiting')];
    health = { status: 'starting', starting: { elapsed_ms: 1, images } };
    const running = start();
    const building = 'the runner is starting and builds the image python3 (2 of 3)';
    await untilSo(() => expect(waits).toEqual([building]));
    health = HEALTHY;
    answer = () => Response.json({ code: 'stopping', detail: 'it stops' }, { status: 503 });
    await untilSo(() => expect(sent.length).toBeGreaterThan(1));
    answer = () => Response.json({ state: 'ended' });
    await untilSo(() => expect(running.result).toMatchObject({ end: 'exited' }));
  });

  test('[S8] without a runner a job fails shortly before its timeout, and is never sent', async () => {
    health = null;
    const startedAt = clock.now();
    const running = start();
    await untilSo(() => expect(running.fault).not.toBeNull());
    expect(running.fault).toMatchObject({
      code: 'runner_unavailable',
      beforeDispatch: true,
      details: { isFinal: true },
      message: expect.stringContaining('No runner could be reached within 60 s') as string,
    });
    expect(clock.now() - startedAt).toBeGreaterThanOrEqual(59_500);
    expect(sent).toEqual([]);
  });

  test('[S7] a lost answer fails the job at once, which is not sent again', async () => {
    answer = () => {
      throw new Error(LOST);
    };
    const running = start();
    await untilSo(() => expect(running.fault).toMatchObject({ code: 'runner_unavailable', beforeDispatch: false }));
    expect(waits).toEqual([]);
    expect(sent).toHaveLength(limits.runnerAttempts);
  });

  test('[R8] a job for a full runner waits with pauses that grow, and then fails for the scheduler to retry', async () => {
    answer = () => Response.json({ detail: 'full' }, { status: 429, headers: { 'retry-after': '1' } });
    const startedAt = clock.now();
    const running = start();
    await untilSo(() => expect(running.fault).toMatchObject({ code: 'runner_busy', beforeDispatch: true }));
    expect(waits).toEqual(['all runners are at capacity']);
    expect(clock.now() - startedAt).toBeGreaterThanOrEqual(JOB.limits.timeoutMs * limits.runnerBusyShare);
    // after 0, 1, 3, 7, 11, … 27 and 30 seconds
    expect(sent.length).toBeLessThanOrEqual((which === 'one runner' ? 1 : 3) * 10);
  });

  test('[R8] a job that waited for a full runner runs once', async () => {
    answer = () => Response.json({ detail: 'full' }, { status: 429, headers: { 'retry-after': '1' } });
    const running = start();
    await untilSo(() => expect(waits).toEqual(['all runners are at capacity']));
    answer = () => Response.json({ state: 'ended' });
    sent = [];
    await untilSo(() => expect(running.result).toMatchObject({ end: 'exited', stdout: '42' }));
    expect(sent).toEqual(['PUT jobs']);
  });

  test('[R5] a call to a relic waits too', async () => {
    health = null;
    const calling = call();
    await untilSo(() => expect(waits).toEqual(['the runner does not answer']));
    expect(sent).toEqual([]);
    health = { status: 'healthy', executors: ['relic'] };
    answer = () => Response.json({ status: 200, type: 'text/plain', body: 'here' });
    await untilSo(() => expect(calling.result).toMatchObject({ ok: true, body: 'here' }));
    expect(sent).toEqual(['POST relics']);
  });

  test('[J5] a cancel ends the wait', async () => {
    health = null;
    const running = start();
    await untilSo(() => expect(waits).toHaveLength(1));
    running.stop.abort(new Error('cancelled'));
    await untilSo(() => expect(running.fault).toMatchObject({ message: 'cancelled' }));
    health = HEALTHY;
    await untilSo(() => expect(clock.now()).toBeGreaterThan(1_030_000));
    expect(sent).toEqual([]);
  });
});

test('[R7] after a broken connection the runner’s health is checked again before any request, however recent the last answer', async () => {
  const first = start();
  await untilSo(() => expect(first.result).not.toBeNull());
  health = null;
  expect(await pool.health()).toBeNull();
  const second = start({ ...JOB, id: 'ses_1/1/0/1/1' });
  await untilSo(() => expect(waits).toHaveLength(1));
  expect(second.fault).toBeNull();
  expect(sent).toEqual(['PUT jobs']);
});

test('[S7] a waiting action reports the reason as progress, and is not retried when its time is used up', async () => {
  health = null;
  const context = contextOf({ runner: pool });
  const outcome = pythonExecutor.execute(callOf({ code: 'x' }, { action: { type: 'python' } }), context);
  let ended: Awaited<typeof outcome> | null = null;
  void outcome.then((end) => (ended = end));
  await untilSo(() => expect(ended).not.toBeNull());
  expect(context.seen).toEqual([{ stream: 'runner', text: 'waiting for a runner: the runner does not answer\n' }]);
  expect(errorOf(await outcome)).toMatchObject({ code: 'runner_unavailable', retryable: false, beforeDispatch: true });
});
