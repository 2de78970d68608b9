/** Messages that are concurrent, repeated, or too many (H1, J7), through the session API. */
import { describe, expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import type { ModelDelta } from '../../src/domain/ports/model.ts';
import { createSessionApp } from '../../src/http/session-app.ts';
import { EXPIRY_HEADER } from '../../src/http/session-env.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { sessionKit, settle } from '../support/session-kit.ts';
import type { SessionKit } from '../support/session-kit.ts';
import { sessionApi } from './session-api.ts';

/** A session whose model sends nothing until `speak` releases it. */
async function talk() {
  const mute = Promise.withResolvers<void>();
  const { kit, load } = await sessionApi({
    async *stream(): AsyncGenerator<ModelDelta> {
      yield { type: 'text', text: '<response final="true">yes' };
      await mute.promise;
      yield { type: 'text', text: '</response>' };
      yield { type: 'finish', reason: 'stop' };
    },
  });
  kit.sql.onSync = settle;
  const send = async (content: string, more: { key?: string; query?: string; stream?: boolean } = {}) => {
    const { key, query = '', stream = false } = more;
    const headers: Record<string, string> = key === undefined ? {} : { 'idempotency-key': key };
    return await load(`/message${query}`, { method: 'POST', headers, body: JSON.stringify({ content, stream }) });
  };
  return { kit, send, speak: mute.resolve };
}

const runOf = async (response: Response): Promise<string> => ((await response.json()) as { run_id: string }).run_id;
const problem = async (response: Response): Promise<[number, string]> => [
  response.status,
  ((await response.json()) as { code: string }).code,
];

describe('[J7] requests with the same Idempotency-Key', () => {
  test('are one run, for twenty concurrent requests on a slow disk', async () => {
    const { kit, send, speak } = await talk();
    const all = Array.from({ length: 20 }, () => send('go', { key: 'k' }));
    await settle();
    speak();
    const runs = await Promise.all((await Promise.all(all)).map(runOf));
    expect(new Set(runs).size).toBe(1);
    expect(kit.requests).toHaveLength(1);
  });

  test('are answered only after the first one is durable', async () => {
    const { kit } = await talk();
    const disk = Promise.withResolvers<void>();
    kit.sql.onSync = async () => await disk.promise;
    let answers = 0;
    const request = { content: 'go', ifBusy: 'queue', tokens: false, idempotencyKey: 'k' } as const;
    const all = [1, 2].map(() => kit.session.accept(request).finally(() => (answers += 1)));
    await settle();
    expect([kit.session.runCount, answers]).toEqual([1, 0]);
    disk.resolve();
    await Promise.all(all);
    expect(answers).toBe(2);
  });

  test('replay the whole run to a late client, from its first event', async () => {
    const { send, speak } = await talk();
    speak();
    await send('before');
    const first = await (await send('go', { key: 'k', stream: true })).text();
    const again = await (await send('go', { key: 'k', stream: true })).text();
    const journaled = (body: string): string[] => body.split(/(?<=\n\n)/).filter((frame) => frame.startsWith('id: '));
    expect(journaled(again)).toEqual(journaled(first));
    expect(again).toContain('event: agent_completed');
  });

  test('with another message are refused: while the first waits, runs, and has ended', async () => {
    const { kit, send, speak } = await talk();
    const running = send('one', { key: 'a' });
    await settle();
    const queued = send('two', { key: 'b' });
    await settle();
    expect(await problem(await send('other', { key: 'a' }))).toEqual([422, 'idempotency_mismatch']);
    expect(await problem(await send('other', { key: 'b' }))).toEqual([422, 'idempotency_mismatch']);
    speak();
    await Promise.all([running, queued]);
    expect(await problem(await send('other', { key: 'b' }))).toEqual([422, 'idempotency_mismatch']);
    expect(kit.session.runCount).toBe(2);
  });

  test('use no place in a full queue, and if_busy does not refuse them, because their run exists', async () => {
    const { send, speak } = await talk();
    const first = send('go', { key: 'k' });
    await settle();
    const waiting = Array.from({ length: limits.queuedMessages }, (_, n) => send(`n${n}`));
    await settle();
    expect(await problem(await send('one more'))).toEqual([429, 'queue_full']);
    const same = [send('go', { key: 'k' }), send('go', { key: 'k', query: '?if_busy=reject' })];
    await settle();
    speak();
    const ids = await Promise.all((await Promise.all([first, ...same])).map(runOf));
    expect(new Set(ids).size).toBe(1);
    await Promise.all(waiting);
  });
});

describe('[H1] several messages', () => {
  test('sent at once: one runs, eight wait, and the others are refused with 429; the accepted ones are answered in order', async () => {
    const { kit, send, speak } = await talk();
    const all = Array.from({ length: 20 }, (_, n) => send(`m${n}`));
    await settle();
    await settle();
    speak();
    const responses = await Promise.all(all);
    const taken = responses.filter(({ status }) => status === 200);
    const refused = responses.filter(({ status }) => status !== 200);
    expect(taken).toHaveLength(1 + limits.queuedMessages);
    for (const response of refused) {
      expect(response.headers.get('retry-after')).not.toBeNull();
      expect(await problem(response)).toEqual([429, 'queue_full']);
    }
    const said = kit.requests.map(({ messages }) => messages.at(-1)?.content);
    expect(said.map((content, n) => content?.includes(`m${n}`))).toEqual(said.map(() => true));
  });

  test('with if_busy=reject: exactly one runs, and the others are refused with its run id', async () => {
    const { kit, send, speak } = await talk();
    const all = Array.from({ length: 10 }, (_, n) => send(`m${n}`, { query: '?if_busy=reject' }));
    await settle();
    speak();
    const bodies = await Promise.all(
      (await Promise.all(all)).map(async (response) => ({
        ...((await response.json()) as { run_id: string }),
        status: response.status,
      })),
    );
    expect(bodies.map(({ status }) => status).toSorted()).toEqual([200, ...Array.from({ length: 9 }, () => 409)]);
    expect(new Set(bodies.map(({ run_id: run }) => run)).size).toBe(1);
    expect(kit.session.runCount).toBe(1);
  });
});

describe('[H5] everything that a token opened ends with the token', () => {
  async function open(
    path: string,
    init: RequestInit = {},
  ): Promise<{ response: Promise<Response>; clock: VirtualClock; kit: SessionKit }> {
    const clock = new VirtualClock();
    const mute = Promise.withResolvers<void>();
    const kit = await sessionKit({
      async *stream(): AsyncGenerator<ModelDelta> {
        await mute.promise;
        yield { type: 'finish', reason: 'stop' };
      },
    });
    const app = createSessionApp({ session: kit.session, clock, destroy: async () => undefined, log: () => undefined });
    const headers = { [EXPIRY_HEADER]: String(clock.now() + 10_000) };
    return {
      response: Promise.resolve(app.fetch(new Request(`http://session${path}`, { ...init, headers }))),
      clock,
      kit,
    };
  }

  test('an answer that waits for the run', async () => {
    const { response, clock, kit } = await open('/message', {
      method: 'POST',
      body: JSON.stringify({ content: 'hi', stream: false }),
    });
    await settle();
    clock.advance(10_000);
    expect(await problem(await response)).toEqual([401, 'unauthorized']);
    expect(kit.session.busy).toBe(true);
  });

  test('an answer that streams', async () => {
    const { response, clock, kit } = await open('/message', {
      method: 'POST',
      body: JSON.stringify({ content: 'hi' }),
    });
    const text = (await response).text();
    await settle();
    clock.advance(10_000);
    expect(await text).toMatch(/: the token has expired; the run continues\n\n$/);
    expect(kit.session.busy).toBe(true);
  });

  test('events, and a slowly read export', async () => {
    const events = await open('/events');
    const text = (await events.response).text();
    await settle();
    events.clock.advance(10_000);
    expect(await text).toContain('has expired');
    const slow = await open('/export');
    const { body } = await slow.response;
    slow.clock.advance(10_000);
    await expect(body?.getReader().read()).rejects.toMatchObject({ code: 'unauthorized' });
  });
});
