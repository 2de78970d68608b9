/** Several real runners behind one client: selection, session affinity, failover (R7). */
import { randomUUID } from 'node:crypto';

import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { FakeRelicHost } from '../../../container-runner/test/support/fake-relic-host.ts';
import { FakeSandbox } from '../../../container-runner/test/support/fake-sandbox.ts';
import { SECRET, startRunner, type TestRunner } from '../../../container-runner/test/support/test-runner.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { JobResult, RelicAnswer, RunnerClient, RunnerJob } from '../../../src/domain/ports/runner.ts';
import { rankOf } from '../../../src/executors/runner/choice.ts';
import { createRunnerClient } from '../../../src/executors/runner/client.ts';
import { createRunnerPool } from '../../../src/executors/runner/pool.ts';
import { RunnerRecord } from '../../../src/executors/runner/record.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { CONTAINER_RELIC, relicOf } from '../../support/definitions.ts';
import { eventually } from '../../support/eventually.ts';

interface Node {
  readonly sandbox: FakeSandbox;
  readonly runner: TestRunner;
  readonly relics: FakeRelicHost;
  /** Requests that it received. */
  readonly asked: string[];
  /** The network to it is down. */
  cut: boolean;
}

let clock: VirtualClock;
let nodes: Node[];
/** What the sessions of the thread know. */
let records: Map<string, RunnerRecord>;

async function startNode(): Promise<Node> {
  const sandbox = new FakeSandbox();
  const relics = new FakeRelicHost();
  return {
    sandbox,
    relics,
    runner: await startRunner({ sandboxes: [sandbox], relicHost: relics, now: () => clock.now() }),
    asked: [],
    cut: false,
  };
}

function poolOf(labels: readonly (readonly string[])[] = [[], [], []]): RunnerClient {
  return createRunnerPool({
    runners: nodes.map(({ runner }, at) => ({ url: runner.url, labels: labels[at] ?? [] })),
    clock,
    recordOf: (url) => {
      const record = records.get(url) ?? new RunnerRecord();
      records.set(url, record);
      return record;
    },
    connect: (baseUrl, reports) => {
      const node = nodes.find(({ runner }) => runner.url === baseUrl);
      return createRunnerClient({
        baseUrl,
        reports,
        key: { id: null, secret: SECRET },
        clock,
        newNonce: randomUUID,
        moveAfterMs: limits.runnerMoveMs,
        fetch: async (input, init) => {
          node?.asked.push(`${init.method ?? 'GET'} ${new URL(input).pathname.split('/')[1] ?? ''}`);
          if (node?.cut === true) {
            throw Object.assign(new Error('no way'), { cause: { code: 'ECONNREFUSED' } });
          }
          const stop = new AbortController();
          const signal = AbortSignal.any([
            stop.signal,
            ...(init.signal === null || init.signal === undefined ? [] : [init.signal]),
          ]);
          underWay += 1;
          try {
            const response = await fetch(input, { ...init, signal });
            if (node !== undefined) cuts.set(node, () => stop.abort());
            if (response.headers.get('content-type')?.startsWith('text/event-stream') === true) return response;
            return new Response(await response.text(), response);
          } finally {
            underWay -= 1;
          }
        },
      });
    },
  });
}
/** Pending requests: they would time out if the clock advanced. */
let underWay = 0;
/** Closes the open streams to a node. */
const cuts = new Map<Node, () => void>();

const job = (more: Partial<RunnerJob> = {}): RunnerJob => ({
  id: `ses_1/1/0/${randomUUID()}/1`,
  session: 'ses_1',
  kind: 'python',
  code: 'print(1)',
  runtime: null,
  inputs: {},
  limits: { timeoutMs: 60_000, memoryMb: null },
  ...more,
});

function start(pool: RunnerClient, what: RunnerJob = job()): Promise<JobResult> {
  return pool.run(what, { signal: new AbortController().signal, output: () => undefined });
}

/** Number of programs that each node has started, once `total` of them have. */
async function spread(total: number): Promise<number[]> {
  return await eventually(() => {
    const counts = nodes.map(({ sandbox }) => sandbox.started.length);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(total);
    return counts;
  });
}

async function untilSo(check: () => void): Promise<void> {
  await eventually(() => {
    if (underWay === 0) clock.advance(500);
    check();
  });
}

/** Answers that arrive after the clock has advanced would seem to have taken that long. */
async function allAnswered(): Promise<void> {
  await eventually(() => expect(underWay).toBe(0));
}

beforeEach(async () => {
  clock = new VirtualClock(Date.now());
  records = new Map();
  nodes = await Promise.all([startNode(), startNode(), startNode()]);
});
afterEach(async () => {
  cuts.clear();
  await Promise.all(nodes.map(({ runner }) => runner.close()));
});

describe('runner selection', () => {
  test('[R7] jobs of other Workers take places', async () => {
    const first = poolOf();
    for (let at = 0; at < 8; at += 1) void start(first, job({ session: 'a' }));
    expect((await spread(8)).toSorted()).toEqual([0, 0, 8]);
    records = new Map();
    void start(poolOf(), job({ session: 'a' }));
    expect((await spread(9)).toSorted()).toEqual([0, 1, 8]);
  });

  test('[R7] sessions of a thread share what they know: answers to jobs tell the load, so no further question is needed', async () => {
    for (const session of ['a', 'b', 'c']) void start(poolOf(), job({ session }));
    await spread(3);
    await allAnswered();
    const questions = (): number => nodes.flatMap(({ asked }) => asked).filter((line) => line === 'GET health').length;
    const asked = questions();
    for (let at = 3; at < 18; at += 1) {
      clock.advance(limits.runnerLoadMs / 4);
      void start(poolOf(), job({ session: `ses_${at}`, movable: true }));
      await spread(at + 1);
      await allAnswered();
    }
    // each of the 15 sessions would otherwise ask a runner
    expect(questions() - asked).toBeLessThan(15);
  });

  test('[R7] [S7] a job that may run only once needs a sign of life to its own session', async () => {
    nodes = nodes.slice(0, 1);
    const questions = (): number => nodes.flatMap(({ asked }) => asked).filter((line) => line === 'GET health').length;
    void start(poolOf(), job({ session: 'a', movable: true }));
    await spread(1);
    const asked = questions();
    const pool = poolOf();
    void start(pool, job({ session: 'b', movable: true }));
    await spread(2);
    expect(questions()).toBe(asked);
    const other = poolOf();
    void start(other, job({ session: 'c' }));
    await spread(3);
    expect(questions()).toBe(asked + 1);
    void start(other, job({ session: 'c' }));
    await spread(4);
    expect(questions()).toBe(asked + 1);
  });

  test('[R7] all jobs of a session go to one runner and share one stream', async () => {
    const pool = poolOf();
    for (let at = 0; at < 5; at += 1) void start(pool);
    expect((await spread(5)).toSorted()).toEqual([0, 0, 5]);
    expect(nodes.flatMap(({ asked }) => asked).filter((line) => line === 'GET events')).toHaveLength(1);
  });

  test('[R2] a job goes only to a runner with its sandbox level', async () => {
    const strong = await startRunner({ sandboxes: [new FakeSandbox('bubblewrap')], now: () => clock.now() });
    try {
      const addresses = [...nodes.map(({ runner }) => runner.url), strong.url];
      const pool = createRunnerPool({
        runners: addresses.map((url) => ({ url, labels: [] })),
        clock,
        connect: (baseUrl) =>
          createRunnerClient({
            baseUrl,
            key: { id: null, secret: SECRET },
            clock,
            newNonce: randomUUID,
            fetch: async (input, init) => await fetch(input, init),
          }),
      });
      const done = start(pool, job({ id: 'strong-1', sandbox: 'bubblewrap' }));
      await eventually(async () =>
        expect(await (await strong.ask('GET', '/jobs/strong-1')).json()).toMatchObject({ sandbox: 'bubblewrap' }),
      );
      await strong.ask('DELETE', '/jobs/strong-1');
      expect((await done).end).toBe('killed');
      await expect(start(pool, job({ sandbox: 'docker' }))).rejects.toMatchObject({
        code: 'runner_rejected',
        beforeDispatch: true,
      });
      expect(nodes.map(({ sandbox }) => sandbox.started.length)).toEqual([0, 0, 0]);
    } finally {
      await strong.close();
    }
  });

  test('[R7] a job goes only to a runner with its labels', async () => {
    const pool = poolOf([[], ['gpu'], ['gpu', 'big']]);
    void start(pool, job({ labels: ['gpu', 'big'] }));
    expect(await spread(1)).toEqual([0, 0, 1]);
    await expect(start(pool, job({ labels: ['tpu'] }))).rejects.toMatchObject({
      code: 'runner_rejected',
      beforeDispatch: true,
      message: 'No runner has the labels tpu (labels of the runners: none; gpu; gpu+big)',
    });
  });

  test('[R7] a runner’s health is checked once, and not again while its stream is active', async () => {
    nodes = nodes.slice(0, 1);
    const [only] = nodes;
    const pool = poolOf();
    const running = start(pool);
    await spread(1);
    only?.sandbox.started[0]?.end();
    expect(await running).toMatchObject({ end: 'exited' });
    expect(only?.asked.toSorted()).toEqual(['GET events', 'GET health', 'PUT jobs']);
    clock.advance(limits.runnerAliveMs);
    const next = start(pool);
    await spread(2);
    only?.sandbox.started[1]?.end();
    await next;
    expect(only?.asked.filter((line) => line === 'GET health')).toHaveLength(1);
  });
});

describe('a runner that is down', () => {
  test('[R7] new jobs go to the others', async () => {
    const [first] = nodes;
    if (first !== undefined) first.cut = true;
    const pool = poolOf();
    for (const session of ['a', 'b', 'c', 'd', 'e', 'f']) void start(pool, job({ session }));
    expect((await spread(6))[0]).toBe(0);
  });

  test('[R7] the next job of a session goes to another runner if its runner is gone', async () => {
    const pool = poolOf();
    void start(pool).catch(() => undefined);
    await spread(1);
    const gone = nodes.find(({ sandbox }) => sandbox.started.length === 1);
    if (gone !== undefined) gone.cut = true;
    void start(pool);
    await untilSo(() =>
      expect(nodes.filter((node) => node !== gone).flatMap(({ sandbox }) => sandbox.started)).toHaveLength(1),
    );
  });

  test.each([
    ['an idempotent job moves to another runner', true],
    ['any other job is lost, and does not run again', false],
  ])('[S7] %s', async (_name, movable) => {
    const pool = poolOf();
    const running = start(pool, job({ movable }));
    let result: JobResult | null = null;
    void running.then((end) => (result = end));
    await spread(1);
    const gone = nodes.find(({ sandbox }) => sandbox.started.length === 1);
    if (gone === undefined) throw new Error('nobody runs it');
    await eventually(() => expect(gone.asked).toContain('GET events'));
    gone.cut = true;
    cuts.get(gone)?.();
    const others = (): FakeSandbox['started'] =>
      nodes.filter((node) => node !== gone).flatMap(({ sandbox }) => sandbox.started);
    if (movable) {
      await untilSo(() => expect(others()).toHaveLength(1));
      others()[0]?.print('moved');
      others()[0]?.end();
    }
    await untilSo(() => expect(result).not.toBeNull());
    expect(result).toMatchObject(movable ? { end: 'exited', stdout: 'moved' } : { end: 'lost' });
    expect(others()).toHaveLength(movable ? 1 : 0);
  });

  test('[S7] a job that a runner cannot have accepted goes to the next one, even if it is unsafe', async () => {
    const pool = poolOf();
    // healthy at the last check
    await pool.health();
    for (const node of nodes.slice(0, 2)) node.cut = true;
    void start(pool, job({ movable: false }));
    await untilSo(() => expect(nodes[2]?.sandbox.started).toHaveLength(1));
  });

  test('[S7] an idempotent job moves to a runner that was away when the job was first offered', async () => {
    const pool = poolOf();
    void start(pool, job({ session: 'other' })).catch(() => undefined);
    await spread(1);
    await allAnswered();
    const last = nodes.find(({ sandbox }) => sandbox.started.length === 1);
    const away = nodes.filter((node) => node !== last);
    const moved = (): FakeSandbox['started'] => away.flatMap(({ sandbox }) => sandbox.started);
    for (const node of away) node.cut = true;
    const isAwayFirst = (session: string): boolean =>
      nodes.toSorted((a, b) => rankOf(b.runner.url, session) - rankOf(a.runner.url, session))[0] !== last;
    const session = Array.from({ length: 100 }, (_, at) => `ses_${at}`).find(isAwayFirst) ?? '';
    const running = start(pool, job({ session, movable: true }));
    await eventually(() => expect(away.flatMap(({ asked }) => asked)).toContain('GET health'));
    await untilSo(() => expect(last?.sandbox.started).toHaveLength(2));
    for (const node of away) node.cut = false;
    if (last !== undefined) {
      last.cut = true;
      cuts.get(last)?.();
    }
    let result: JobResult | null = null;
    void running.then((end) => (result = end));
    await untilSo(() => expect([moved().length, result]).not.toEqual([0, null]));
    moved()[0]?.end();
    await untilSo(() => expect(result).toMatchObject({ end: 'exited' }));
  });

  test('[R7] without an available runner the error gives the reason', async () => {
    for (const node of nodes) node.cut = true;
    const running = start(poolOf());
    running.catch(() => undefined);
    let fault: unknown = null;
    void running.catch((thrown: unknown) => (fault = thrown));
    await untilSo(() => expect(fault).toMatchObject({ code: 'runner_unavailable', beforeDispatch: true }));
  });
});

describe('a lookup', () => {
  test('[J2] finds the job on its runner', async () => {
    const what = job();
    void start(poolOf(), what);
    await spread(1);
    const found = poolOf().lookup(what, { signal: new AbortController().signal, output: () => undefined });
    const program = nodes.flatMap(({ sandbox }) => sandbox.started)[0];
    program?.print('here');
    program?.end({ exitCode: 3 });
    expect(await found).toMatchObject({ end: 'exited', exitCode: 3, stdout: 'here' });
  });

  test('[J2] of a job unknown to all gives null; if one runner is unreachable, the job is lost', async () => {
    const observe = { signal: new AbortController().signal, output: () => undefined };
    expect(await poolOf().lookup(job(), observe)).toBeNull();
    const [, second] = nodes;
    if (second !== undefined) second.cut = true;
    let result: JobResult | null = null;
    void poolOf()
      .lookup(job(), observe)
      .then((end) => (result = end));
    await untilSo(() => expect(result).toMatchObject({ end: 'lost' }));
  });
});

describe('relics', () => {
  const ask = (pool: RunnerClient, space: string, persistent = true): Promise<RelicAnswer> =>
    pool.callRelic(
      {
        space,
        relic: relicOf(CONTAINER_RELIC, { persistent }),
        method: 'GET',
        path: '/x',
        body: null,
        timeoutMs: 5_000,
      },
      { signal: new AbortController().signal },
    );
  const holders = (space: string): Node[] =>
    nodes.filter(({ relics }) => relics.started.some(({ id }) => id.scope === space));

  test('[R5] every Worker finds the same runner for a relic, and scopes are spread over the runners', async () => {
    const spaces = Array.from({ length: 16 }, (_, at) => `ses_${at}`);
    for (const space of spaces) {
      expect(await ask(poolOf(), space)).toMatchObject({ ok: true, status: 200 });
      await ask(poolOf(), space);
    }
    expect(spaces.map((space) => holders(space).length)).toEqual(spaces.map(() => 1));
    expect(new Set(spaces.map((space) => holders(space)[0])).size).toBeGreaterThan(1);
  });

  test('[R5] while its runner is down, a relic with state is unavailable; one without moves to another runner', async () => {
    const pool = poolOf();
    await ask(pool, 'ses_1');
    const [holder] = holders('ses_1');
    if (holder === undefined) throw new Error('nobody has it');
    holder.cut = true;
    let fault: unknown = null;
    void ask(pool, 'ses_1').catch((thrown: unknown) => (fault = thrown));
    await untilSo(() => expect(fault).toMatchObject({ code: 'runner_unavailable', beforeDispatch: true }));
    expect(await ask(pool, 'ses_1', false)).toMatchObject({ ok: true });
    expect(holders('ses_1')).toHaveLength(2);
  });

  test('[R5] the end of a session is sent to all runners', async () => {
    await poolOf().stopRelics('ses_1', { forget: true });
    expect(nodes.map(({ relics }) => relics.forgotten)).toEqual(nodes.map(() => [{ scope: 'ses_1', name: null }]));
  });
});

test('[H1] health lists every runner by its labels, without addresses', async () => {
  const [first] = nodes;
  if (first !== undefined) first.cut = true;
  const health = await poolOf([['a'], ['b'], []]).health();
  expect(health).toMatchObject({
    status: 'healthy',
    runners: [
      { labels: ['a'], status: 'unreachable' },
      { labels: ['b'], status: 'healthy', jobs: { running: 0 } },
      { labels: [], status: 'healthy' },
    ],
  });
  expect(JSON.stringify(health)).not.toContain('127.0.0.1');
});
