/** A runner in a container that sleeps: what starts it, and what does not (R7). */
import { beforeEach, describe, expect, test } from 'vitest';

import { limits } from '../../../src/domain/limits.ts';
import { pythonExecutor } from '../../../src/executors/python.ts';
import { createRunnerClient } from '../../../src/executors/runner/client.ts';
import { ContainerFront, type ContainerRequest } from '../../../src/executors/runner/container-front.ts';
import { createRunnerPool } from '../../../src/executors/runner/pool.ts';
import { SentJobs } from '../../../src/executors/runner/sent-jobs.ts';
import { openNodeSql } from '../../../testing/node-sql.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { callOf, contextOf, errorOf } from '../support.ts';

/** The platform's container: it accepts connections some time after its start, and its ledger ends with it. */
class FakeContainer {
  running = false;
  starts = 0;
  idleMs: number | null = null;
  /** Accepts connections from then on; infinity: never. */
  readyAt = Number.POSITIVE_INFINITY;
  startMs = 1_500;
  /** The runner in it answers so until it has prepared its interpreters. */
  preparedAt = 0;
  /** The platform refuses to start it. */
  startFault: Error | null = null;
  /** Called after a request was received; throws to lose the answer. */
  received: (request: string) => Response | null | Promise<Response> = () => null;
  readonly seen: string[] = [];
  /** Ids of the jobs that ran. */
  readonly ran: string[] = [];
  #ledger = new Set<string>();

  start(): void {
    if (this.startFault !== null) throw this.startFault;
    this.running = true;
    this.starts += 1;
    this.readyAt = clock.now() + this.startMs;
    this.#ledger = new Set();
  }

  crash(): never {
    this.running = false;
    throw new Error('Network connection lost.');
  }

  stopWhenIdle(ms: number): Promise<void> {
    this.idleMs = ms;
    return Promise.resolve();
  }

  async fetch(url: string, { method, body }: ContainerRequest): Promise<Response> {
    await Promise.resolve();
    if (!this.running || clock.now() < this.readyAt) throw new Error('the container is not listening');
    const { pathname } = new URL(url);
    const request = `${method} ${pathname} ${new TextDecoder().decode(body ?? new ArrayBuffer())}`.trim();
    this.seen.push(request);
    const isPrepared = clock.now() >= this.preparedAt;
    const other = await this.received(request);
    if (other !== null) return other;
    if (pathname === '/health') {
      return Response.json({ status: isPrepared ? 'healthy' : 'starting', executors: ['python'] });
    }
    if (!isPrepared) return Response.json({ code: 'starting' }, { status: 503 });
    if (method === 'PUT' && !this.#ledger.has(pathname)) {
      this.#ledger.add(pathname);
      this.ran.push(pathname);
    }
    return Response.json({ ok: 1 });
  }

  /** Requests other than health checks. */
  get work(): string[] {
    return this.seen.filter((request) => request !== 'GET /health');
  }
}

let clock: VirtualClock;
let container: FakeContainer;
let sql: ReturnType<typeof openNodeSql>;
let front: ContainerFront;
/** The object of the container, on a new host. */
const onNewHost = (): ContainerFront => new ContainerFront(container, clock, new SentJobs(sql));
beforeEach(() => {
  clock = new VirtualClock();
  container = new FakeContainer();
  sql = openNodeSql();
  front = onNewHost();
});

/** Lets the clock run until the answer is there. */
async function answerTo(
  method: string,
  path: string,
  body: string | null = null,
  headers: Record<string, string> = {},
): Promise<Response> {
  return await settled(front.fetch(new Request(`http://runner-0${path}`, { method, body, headers })));
}

async function settled<T>(answer: Promise<T>): Promise<T> {
  const state = { isDone: false };
  void Promise.allSettled([answer]).finally(() => (state.isDone = true));
  while (!state.isDone) {
    await new Promise((resolve) => setImmediate(resolve));
    if (!state.isDone && clock.next !== null) clock.advance(Math.max(0, clock.next - clock.now()));
  }
  return await answer;
}

describe('[R7] a container that sleeps', () => {
  test('a job starts it, and is sent once its runner is healthy', async () => {
    const answer = await answerTo('PUT', '/jobs/a', '{"code":1}');
    expect([answer.status, container.starts, container.idleMs]).toEqual([200, 1, limits.containerIdleMs]);
    expect(container.seen).toEqual(['GET /health', 'PUT /jobs/a {"code":1}']);
    expect((await answerTo('PUT', '/jobs/b')).status).toBe(200);
    expect(container.starts).toBe(1);
  });

  test('the start includes the time in which the runner prepares itself', async () => {
    container.preparedAt = clock.now() + 4_000;
    const startedAt = clock.now();
    const answer = await answerTo('PUT', '/jobs/a');
    expect([answer.status, clock.now() - startedAt]).toEqual([200, 4_000]);
    expect(container.work).toEqual(['PUT /jobs/a']);
  });

  test('jobs that arrive during the start wait for it, and there is one start', async () => {
    const both = await Promise.all([
      answerTo('PUT', '/jobs/a'),
      answerTo('PUT', '/jobs/b'),
      answerTo('GET', '/events'),
    ]);
    expect(both.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(container.starts).toBe(1);
  });

  test.each([
    ['GET', '/jobs/a'],
    ['DELETE', '/jobs/a'],
    ['DELETE', '/workspaces/ses_1'],
    ['DELETE', '/relics'],
  ])('%s %s does not start it: it has no jobs and files', async (method, path) => {
    const answer = await answerTo(method, path);
    expect([answer.status, container.starts]).toEqual([404, 0]);
    expect(await answer.json()).toMatchObject({ code: 'unknown_job' });
  });

  test('health does not start it, and tells since when it starts', async () => {
    expect(await (await answerTo('GET', '/health')).json()).toEqual({
      status: 'asleep',
      executors: ['python', 'shell', 'tool'],
    });
    expect(container.starts).toBe(0);
    void front.fetch(new Request('http://runner-0/jobs/a', { method: 'PUT' }));
    await new Promise((resolve) => setImmediate(resolve));
    clock.advance(700);
    expect(await (await answerTo('GET', '/health')).json()).toMatchObject({ status: 'asleep', starting_ms: 700 });
  });

  test('health reaches it only shortly after work, so it does not keep it awake', async () => {
    await answerTo('PUT', '/jobs/a');
    for (let at = 0; at < 120; at += 1) {
      expect(await (await answerTo('GET', '/health')).json()).toMatchObject({ status: 'healthy' });
      clock.advance(1_000);
    }
    expect(container.seen.filter((line) => line === 'GET /health').length).toBeLessThanOrEqual(
      limits.containerQuietMs / 1_000 + 2,
    );
    // the platform has stopped it
    container.running = false;
    expect(await (await answerTo('GET', '/health')).json()).toMatchObject({ status: 'asleep' });
    expect((await answerTo('PUT', '/jobs/b')).status).toBe(200);
    expect(container.starts).toBe(2);
  });

  test('one that does not start in time is reported as starting, before anything was sent', async () => {
    container.startMs = Number.POSITIVE_INFINITY;
    const answer = await answerTo('PUT', '/jobs/a');
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '2']);
    expect(await answer.json()).toMatchObject({ code: 'starting', detail: 'the container is not listening' });
  });
});

async function problemOf(answer: Response): Promise<readonly [number, unknown]> {
  const { code } = (await answer.json()) as { code?: unknown };
  return [answer.status, code];
}

describe('[J3] [R7] work is sent to a container once', () => {
  test('a job whose answer was lost in a crash is not sent again, and its outcome is unknown', async () => {
    container.received = (request) => {
      if (!request.startsWith('PUT')) return null;
      container.ran.push('/jobs/a');
      return container.crash();
    };
    expect(await problemOf(await answerTo('PUT', '/jobs/a'))).toEqual([502, 'outcome_unknown']);
    expect([container.ran, container.starts]).toEqual([['/jobs/a'], 1]);
  });

  test('so is one whose connection failed while the container runs on', async () => {
    container.received = (request) => {
      if (request.startsWith('PUT') || request.startsWith('POST')) throw new Error('Network connection lost.');
      return null;
    };
    expect(await problemOf(await answerTo('PUT', '/jobs/a'))).toEqual([502, 'outcome_unknown']);
    expect(await problemOf(await answerTo('POST', '/relics/notes/call', '{}'))).toEqual([502, 'outcome_unknown']);
    expect(container.work).toEqual(['PUT /jobs/a', 'POST /relics/notes/call {}']);
    // These are harmless twice, and their client repeats them with a new token.
    expect(await problemOf(await answerTo('PUT', '/workspaces/ses_1/files', 'x'))).toEqual([
      503,
      'container_unreachable',
    ]);
  });

  test.each(['the same host', 'a new host'])(
    'a job that its client repeats after a restart of the container is not sent again (%s of the object)',
    async (host) => {
      await answerTo('PUT', '/jobs/a');
      // The same container: its ledger knows the job.
      expect((await answerTo('PUT', '/jobs/a')).status).toBe(200);
      container.running = false;
      if (host === 'a new host') front = onNewHost();
      expect(await problemOf(await answerTo('PUT', '/jobs/a'))).toEqual([502, 'outcome_unknown']);
      expect(container.starts).toBe(1);
      expect((await answerTo('PUT', '/jobs/b')).status).toBe(200);
      if (host === 'a new host') front = onNewHost();
      expect(await problemOf(await answerTo('PUT', '/jobs/a'))).toEqual([502, 'outcome_unknown']);
      expect([container.ran, container.starts]).toEqual([['/jobs/a', '/jobs/b'], 2]);
    },
  );

  test('a repeatable job is sent to the new container, and has no row', async () => {
    const repeatable = { 'cortex-repeatable': 'true' };
    await answerTo('PUT', '/jobs/a', null, repeatable);
    container.running = false;
    expect((await answerTo('PUT', '/jobs/a', null, repeatable)).status).toBe(200);
    expect(container.ran).toEqual(['/jobs/a', '/jobs/a']);
    expect(sql.exec('SELECT * FROM sent_jobs WHERE job IS NOT NULL')).toEqual([]);
  });

  test.each([409, 429, 503])(
    'a job that the runner refused with %d may be sent to the next container',
    async (status) => {
      container.received = (request) => (request.startsWith('PUT') ? new Response('{}', { status }) : null);
      expect((await answerTo('PUT', '/jobs/a')).status).toBe(status);
      container.received = () => null;
      container.running = false;
      expect((await answerTo('PUT', '/jobs/a')).status).toBe(200);
    },
  );

  test('a job is stored before it is sent, and not sent to a container that was started meanwhile', async () => {
    await answerTo('PUT', '/jobs/a');
    sql.sync = () => {
      container.running = false;
      return Promise.resolve();
    };
    expect(await problemOf(await answerTo('PUT', '/jobs/b'))).toEqual([503, 'container_unreachable']);
    expect(container.ran).toEqual(['/jobs/a']);
    sql.sync = () => Promise.resolve();
    expect((await answerTo('PUT', '/jobs/b')).status).toBe(200);
  });

  test('the oldest ids are dropped', async () => {
    const jobs = new SentJobs(sql);
    for (let at = 0; at <= limits.containerSentJobs; at += 1) await jobs.add(`job ${at}`);
    expect(sql.exec('SELECT count(*) AS n FROM sent_jobs')).toEqual([{ n: limits.containerSentJobs }]);
    for (const known of [jobs, new SentJobs(sql)]) {
      expect([known.has('job 0'), known.has('job 1')]).toEqual([false, true]);
    }
  });

  test('a health check that has no answer ends, and nothing was sent', async () => {
    container.received = () => new Promise<Response>(() => undefined);
    const before = clock.now();
    expect(await problemOf(await answerTo('PUT', '/jobs/a'))).toEqual([503, 'starting']);
    expect(clock.now() - before).toBeLessThanOrEqual(limits.containerStartMs + limits.containerProbeMs);
    expect(container.work).toEqual([]);
  });

  test('a container that was silent for a while has to answer again before it gets work', async () => {
    await answerTo('PUT', '/jobs/a');
    clock.advance(limits.runnerAliveMs + 1);
    container.received = (request) => (request === 'GET /health' && container.starts === 1 ? container.crash() : null);
    expect((await answerTo('PUT', '/jobs/b')).status).toBe(200);
    expect([container.ran, container.starts]).toEqual([['/jobs/a', '/jobs/b'], 2]);
  });

  test('a repeated job whose container turns out to have stopped is not sent to the next one', async () => {
    await answerTo('PUT', '/jobs/a');
    clock.advance(limits.runnerAliveMs + 1);
    container.received = (request) => (request === 'GET /health' && container.starts === 1 ? container.crash() : null);
    expect(await problemOf(await answerTo('PUT', '/jobs/a'))).toEqual([502, 'outcome_unknown']);
    expect(container.ran).toEqual(['/jobs/a']);
  });

  test('a question to a container that has just stopped does not start it', async () => {
    await answerTo('PUT', '/jobs/a');
    container.received = () => container.crash();
    expect(await problemOf(await answerTo('GET', '/jobs/a'))).toEqual([503, 'container_unreachable']);
    expect(await problemOf(await answerTo('GET', '/jobs/a'))).toEqual([404, 'unknown_job']);
    expect(container.starts).toBe(1);
  });

  test.each([
    ['it answered', true],
    ['it answered, and so did its object,', false],
  ])('code whose container stopped before %s fails as outcome_unknown, and runs once', async (_name, isFrontAlive) => {
    container.received = (request) => {
      if (!request.startsWith('PUT')) return null;
      container.ran.push(request.split(' ')[1] ?? '');
      return container.crash();
    };
    let losses = isFrontAlive ? 0 : 1;
    const runner = createRunnerPool({
      clock,
      runners: [{ url: 'http://runner-0', labels: [] }],
      connect: (baseUrl, reports) =>
        createRunnerClient({
          baseUrl,
          reports,
          clock,
          key: { id: null, secret: 's'.repeat(32) },
          newNonce: () => 'n'.repeat(16),
          fetch: async (input, init) => {
            const { pathname } = new URL(input);
            if (pathname === '/events') return new Response(null, { status: 503 });
            const answer = await front.fetch(new Request(input, init));
            if (init.method !== 'PUT' || losses === 0) return answer;
            losses -= 1;
            // The object's host is lost with the answer.
            container.received = () => null;
            front = onNewHost();
            throw new Error('Network connection lost.');
          },
        }),
    });
    const outcome = await settled(pythonExecutor.execute(callOf({ code: 'x' }), contextOf({ runner, clock })));
    expect(errorOf(outcome)).toMatchObject({ code: 'outcome_unknown', retryable: false });
    expect(container.ran.length).toBe(1);
  });
});

describe('[R7] a container that the platform does not start', () => {
  test('is reported at once, and the next request tries again', async () => {
    container.startFault = new Error('no capacity is left');
    const answer = await answerTo('PUT', '/jobs/a');
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '2']);
    expect(await answer.json()).toMatchObject({
      code: 'container_not_started',
      detail: 'the platform does not start it: no capacity is left',
    });
    expect(await (await answerTo('GET', '/health')).json()).not.toHaveProperty('starting_ms');
    container.startFault = null;
    expect((await answerTo('PUT', '/jobs/a')).status).toBe(200);
    expect([container.ran, container.starts]).toEqual([['/jobs/a'], 1]);
  });

  test('one that stops whenever it starts is started a few times only for a request', async () => {
    container.received = () => container.crash();
    expect(await problemOf(await answerTo('PUT', '/jobs/a'))).toEqual([503, 'container_not_started']);
    expect([container.starts, container.work]).toEqual([limits.containerStarts, []]);
  });
});
