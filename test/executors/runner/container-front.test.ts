/** A runner in a container that sleeps: what starts it, and what does not (R7). */
import { beforeEach, describe, expect, test } from 'vitest';

import { limits } from '../../../src/domain/limits.ts';
import { ContainerFront, type ContainerRequest } from '../../../src/executors/runner/container-front.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';

/** The platform's container: it accepts connections some time after its start. */
class FakeContainer {
  running = false;
  starts = 0;
  idleMs: number | null = null;
  /** Accepts connections from then on; infinity: never. */
  readyAt = Number.POSITIVE_INFINITY;
  startMs = 1_500;
  /** The runner in it answers so until it has prepared its interpreters. */
  preparedAt = 0;
  readonly seen: string[] = [];

  start(): void {
    this.running = true;
    this.starts += 1;
    this.readyAt = clock.now() + this.startMs;
  }

  stopWhenIdle(ms: number): Promise<void> {
    this.idleMs = ms;
    return Promise.resolve();
  }

  async fetch(url: string, { method, body }: ContainerRequest): Promise<Response> {
    await Promise.resolve();
    if (!this.running || clock.now() < this.readyAt) throw new Error('the container is not listening');
    if (clock.now() < this.preparedAt) return Response.json({ code: 'starting' }, { status: 503 });
    const { pathname } = new URL(url);
    this.seen.push(`${method} ${pathname} ${new TextDecoder().decode(body ?? new ArrayBuffer())}`.trim());
    return pathname === '/health'
      ? Response.json({ status: 'healthy', executors: ['python'] })
      : Response.json({ ok: 1 });
  }
}

let clock: VirtualClock;
let container: FakeContainer;
let front: ContainerFront;
beforeEach(() => {
  clock = new VirtualClock();
  container = new FakeContainer();
  front = new ContainerFront(container, clock);
});

/** Lets the clock run until the answer is there. */
async function answerTo(method: string, path: string, body: string | null = null): Promise<Response> {
  const answer = front.fetch(new Request(`http://runner-0${path}`, { method, body }));
  const state = { isDone: false };
  void answer.finally(() => (state.isDone = true));
  while (!state.isDone) {
    await new Promise((resolve) => setImmediate(resolve));
    if (!state.isDone && clock.next !== null) clock.advance(Math.max(0, clock.next - clock.now()));
  }
  return await answer;
}

describe('[R7] a container that sleeps', () => {
  test('a job starts it; the request is repeated with its body, and the answer tells the time', async () => {
    const answer = await answerTo('PUT', '/jobs/a', '{"code":1}');
    expect([answer.status, container.starts, container.idleMs]).toEqual([200, 1, limits.containerIdleMs]);
    expect(container.seen).toEqual(['PUT /jobs/a {"code":1}']);
    expect(Number(answer.headers.get('cortex-cold-start'))).toBe(1_500);
    expect((await answerTo('PUT', '/jobs/b')).headers.has('cortex-cold-start')).toBe(false);
    expect(container.starts).toBe(1);
  });

  test('the start includes the time in which the runner prepares itself', async () => {
    container.preparedAt = clock.now() + 4_000;
    const answer = await answerTo('PUT', '/jobs/a');
    expect([answer.status, Number(answer.headers.get('cortex-cold-start'))]).toEqual([200, 4_000]);
  });

  test('jobs that arrive during the start wait for it, and there is one start', async () => {
    const both = await Promise.all([
      answerTo('PUT', '/jobs/a'),
      answerTo('PUT', '/jobs/b'),
      answerTo('GET', '/events'),
    ]);
    expect(both.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(both.every(({ headers }) => headers.has('cortex-cold-start'))).toBe(true);
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
      limits.containerQuietMs / 1_000 + 1,
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
