/** When the client connects again, and when it gives up (K3). */
import { describe, expect, test } from 'vitest';
import { Client } from '../../src/client/index.ts';
import type { Session } from '../../src/client/index.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { allOf } from './client-kit.ts';

const event = (seq: number, type: string, data: object = {}): string =>
  `id: ${seq}\ndata: ${JSON.stringify({ seq, type, run_id: 'run', iteration: 1, data })}\n\n`;
const END = event(9, 'agent_completed', { response: 'x', iterations: 1, usage: {} });

type Reply = { readonly frames: readonly string[]; readonly isSilent?: true } | Response | 'refused';

interface Scene {
  readonly session: Session;
  readonly clock: VirtualClock;
  readonly paths: string[];
  /** Codes of what `onRetry` was told. */
  readonly faults: string[];
  /** How often `onResumed` was called. */
  readonly resumed: () => number;
  /** Advances the clock until the work has ended; returns the milliseconds that passed. */
  passes(work: Promise<unknown>): Promise<number>;
}

/** A server that answers the requests in order; the last reply repeats. */
function scene(...replies: readonly Reply[]): Scene {
  const clock = new VirtualClock();
  const paths: string[] = [];
  const faults: string[] = [];
  let resumed = 0;
  const client = new Client({
    url: 'http://x',
    clock,
    onRetry: ({ code }) => faults.push(code),
    onResumed: () => (resumed += 1),
    random: () => 1,
    fetch: async (url) => {
      const reply = replies[Math.min(paths.length, replies.length - 1)] ?? 'refused';
      paths.push(url.replace('http://x/agent/session/ses/', ''));
      if (reply === 'refused') throw new TypeError('fetch failed');
      return reply instanceof Response ? reply.clone() : stream(reply);
    },
  });
  return {
    session: client.session('ses'),
    clock,
    paths,
    faults,
    resumed: () => resumed,
    async passes(work) {
      const began = clock.now();
      let over = false;
      void work.catch(() => undefined).finally(() => (over = true));
      for (;;) {
        for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
        if (over) return clock.now() - began;
        if (clock.next === null) throw new Error('nothing will happen');
        clock.advance(clock.next - clock.now());
      }
    },
  };
}

function stream({ frames, isSilent }: Exclude<Reply, Response | 'refused'>): Response {
  const left = [...frames];
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const frame = left.shift();
        if (frame !== undefined) return controller.enqueue(new TextEncoder().encode(frame));
        if (isSilent !== true) return controller.close();
        return new Promise<void>(() => undefined);
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
}

const problem = (status: number, code: string, headers: Record<string, string> = {}): Response =>
  Response.json({ code, detail: 'why' }, { status, headers });

const types = async (session: Session): Promise<string[]> =>
  (await allOf(session.run('run').events())).map(({ type }) => type);

describe('[K3] a stream is resumed after its last journaled event', () => {
  test('when it ends early', async () => {
    const { session, paths, passes } = scene(
      { frames: [event(3, 'agent_started'), event(5, 'usage')] },
      { frames: [END] },
    );
    const seen = types(session);
    expect(await passes(seen)).toBeLessThanOrEqual(250);
    expect(await seen).toEqual(['agent_started', 'usage', 'agent_completed']);
    expect(paths).toEqual(['events?after=0&run=run&format=compact', 'events?after=5&run=run&format=compact']);
  });

  test('after 15 seconds of silence, not before', async () => {
    const { session, passes } = scene({ frames: [event(3, 'agent_started')], isSilent: true }, { frames: [END] });
    const seen = types(session);
    const ms = await passes(seen);
    expect(ms).toBeGreaterThanOrEqual(15_000);
    expect(ms).toBeLessThanOrEqual(15_500);
    expect(await seen).toEqual(['agent_started', 'agent_completed']);
  });

  test('at once after agent_waiting, which ends the stream of a message', async () => {
    const { session, passes } = scene({ frames: [event(3, 'agent_waiting')] }, { frames: [END] });
    expect(await passes(types(session))).toBe(0);
  });

  test('for as long as it takes, when the server accepts every connection', async () => {
    const empty = Array.from({ length: 50 }, () => ({ frames: [': heartbeat\n\n'] }));
    const { session, paths, passes } = scene(...empty, { frames: [END] });
    const seen = types(session);
    // Never more than 5 seconds between two of them.
    expect(await passes(seen)).toBeLessThanOrEqual(50 * 5_000);
    expect(paths).toHaveLength(51);
    expect(await seen).toEqual(['agent_completed']);
  });
});

describe('[K3] the application is told that a stream is open again', () => {
  test('once for each connection after the first one that the server accepts, before its events', async () => {
    const { session, faults, resumed, passes } = scene(
      { frames: [event(3, 'agent_started')] },
      'refused',
      { frames: [event(4, 'usage')] },
      problem(503, 'storage_unavailable'),
      { frames: [END] },
    );
    const seen: [type: string, resumed: number][] = [];
    const read = async (): Promise<void> => {
      for await (const { type } of session.run('run').events()) seen.push([type, resumed()]);
    };
    await passes(read());
    expect(seen).toEqual([
      ['agent_started', 0],
      ['usage', 1],
      ['agent_completed', 2],
    ]);
    expect(faults).toHaveLength(4);
  });

  test('not if nothing was lost', async () => {
    const { session, resumed, passes } = scene({ frames: [event(3, 'agent_started'), END] });
    await passes(types(session));
    expect(resumed()).toBe(0);
  });
});

test('[K3] a slow reader is no silent server', async () => {
  const { session, clock, paths } = scene({ frames: [event(3, 'agent_started'), END] });
  for await (const { type } of session.run('run').events()) if (type === 'agent_started') clock.advance(60_000);
  expect(paths).toHaveLength(1);
});

describe('[K3] it gives up', () => {
  test('if it was never connected: after 5 further attempts, within half a minute', async () => {
    const { session, paths, passes } = scene('refused');
    const seen = types(session);
    expect(await passes(seen)).toBeLessThanOrEqual(30_000);
    await expect(seen).rejects.toMatchObject({ code: 'connection_lost', status: 0 });
    expect(paths).toHaveLength(6);
  });

  test('not while a server that it was connected to is away', async () => {
    const away = Array.from({ length: 50 }, (_, n) => (n % 2 === 0 ? 'refused' : problem(503, 'storage_unavailable')));
    const { session, faults, passes } = scene({ frames: [event(3, 'agent_started')] }, ...away, { frames: [END] });
    const seen = types(session);
    expect(await passes(seen)).toBeLessThanOrEqual(51 * 5_000);
    expect(await seen).toEqual(['agent_started', 'agent_completed']);
    // The application is told of each of them.
    expect(faults.slice(0, 3)).toEqual(['connection_lost', 'connection_lost', 'storage_unavailable']);
    expect(faults).toHaveLength(51);
  });

  test('at once when the server refuses', async () => {
    const { session, paths, passes } = scene(problem(404, 'unknown_session'));
    const seen = types(session);
    expect(await passes(seen)).toBe(0);
    await expect(seen).rejects.toMatchObject({ code: 'unknown_session', status: 404, message: 'why' });
    expect(paths).toHaveLength(1);
  });

  test('but waits as long as Retry-After says', async () => {
    const { session, passes } = scene(problem(429, 'too_many_readers', { 'retry-after': '7' }), { frames: [END] });
    const seen = types(session);
    expect(await passes(seen)).toBe(7_000);
    expect(await seen).toEqual(['agent_completed']);
  });

  test('when an answer is no stream of events', async () => {
    const { session, passes } = scene(new Response('<html>', { headers: { 'content-type': 'text/html' } }));
    const seen = types(session);
    await passes(seen);
    await expect(seen).rejects.toMatchObject({ code: 'invalid_response' });
  });
});

test('[Z4] a server that is older than the compact form is asked for the full one', async () => {
  const issues = [{ path: 'format', message: 'Unknown query parameter "format"' }];
  const refusal = Response.json({ code: 'invalid_request', detail: issues[0]?.message, issues }, { status: 400 });
  const { session, paths, faults, passes } = scene(refusal, { frames: [event(3, 'usage')] }, refusal, {
    frames: [END],
  });
  const seen = types(session);
  await passes(seen);
  expect(await seen).toEqual(['usage', 'agent_completed']);
  const query = ['after=0&run=run', 'after=3&run=run'].flatMap((one) => [
    `events?${one}&format=compact`,
    `events?${one}`,
  ]);
  expect(paths).toEqual(query);
  expect(faults).toEqual(['connection_lost']);
});

test('[Z4] [K3] compact frames that are cut off begin again with a complete one', async () => {
  const first = event(3, 'response_started', { final: true });
  const lost = {
    frames: [first, 'data: {"type":"response","t":1,"data":{"segment":3,"offset":0,"delta":"a"}}\n\n', 'data: [1,"b'],
  };
  const whole =
    'data: {"type":"response","session_id":"s","run_id":"run","iteration":1,"timestamp":7,"data":{"segment":3,"offset":0,"delta":"ab"}}\n\n';
  const end = 'id: 4\ndata: {"seq":4,"type":"response_completed","data":{"segment":3,"content":2,"final":true}}\n\n';
  const last = 'id: 9\ndata: {"seq":9,"type":"agent_completed","data":{"response":3,"iterations":1,"usage":{}}}\n\n';
  const { session, passes } = scene(lost, { frames: [whole, end, last] });
  const text = session.run('run').text();
  await passes(text);
  expect(await text).toBe('ab');
});

describe('[K3] a damaged event', () => {
  const DAMAGED = 'id: 3\ndata: {"seq": 3, "type": "wa\n\n';

  test('is read again over the next connection, and nothing is lost', async () => {
    const started = event(2, 'agent_started');
    const warned = event(3, 'warning', { code: 'c', message: 'm' });
    const { session, paths, faults, passes } = scene({ frames: [started, DAMAGED] }, { frames: [warned, END] });
    const seen = types(session);
    await passes(seen);
    expect(await seen).toEqual(['agent_started', 'warning', 'agent_completed']);
    expect([paths.at(-1), faults]).toEqual([expect.stringContaining('after=2'), ['invalid_response']]);
  });

  test('is an error if it is damaged each time', async () => {
    const { session, paths, passes } = scene({ frames: [DAMAGED] });
    const seen = types(session);
    await passes(seen);
    await expect(seen).rejects.toMatchObject({ code: 'invalid_response' });
    expect(paths).toHaveLength(6);
  });
});

test('[K3] a signal ends a wait for the next connection at once', async () => {
  const leave = new AbortController();
  const { session, passes, clock } = scene('refused');
  clock.schedule(100, () => leave.abort());
  const seen = allOf(session.run('run', { signal: leave.signal }).events());
  expect(await passes(seen)).toBe(100);
  expect(await seen).toEqual([]);
});
