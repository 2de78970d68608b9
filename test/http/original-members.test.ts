/** The members that requests and answers of the original have, beside those of this system (docs/migration.md). */
import { describe, expect, test } from 'vitest';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { checkedFetch, checkedSession } from '../support/response-check.ts';
import { toolOf } from '../support/definitions.ts';
import { failedStream, runText, say, sessionKit } from '../support/session-kit.ts';
import type { KitOptions, SessionKit } from '../support/session-kit.ts';
import { bundled } from '../support/bundled.ts';
import { edgeApp } from './edge-app.ts';

interface Client {
  readonly kit: SessionKit;
  ask(path: string, body?: object, init?: RequestInit): Promise<Response>;
  json(path: string, body?: object, init?: RequestInit): Promise<Record<string, unknown>>;
}

async function client(options: KitOptions = {}): Promise<Client> {
  const kit = await sessionKit(options);
  const destroy = async (): Promise<void> => undefined;
  const fetch = checkedSession({ session: kit.session, clock: new VirtualClock(), destroy, log: () => undefined });
  const ask: Client['ask'] = async (path, body, init = {}) => {
    const posted = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
    return await fetch(new Request(`http://session${path}`, { ...posted, ...init }));
  };
  return { kit, ask, json: async (...given) => (await (await ask(...given)).json()) as Record<string, unknown> };
}

const answer = (text: string): string => `<response final="true">${text}</response>`;
const call = (id: string): string =>
  `<action type="tool" mode="async" id="${id}">{"name": "echo", "parameters": {"q": 1}}</action>`;

describe('[H1] a session', () => {
  const agent = bundled.agent('assistant');
  const create = async (body: object): Promise<Response> => {
    const app = edgeApp({ agent: async () => agent, createSession: async () => undefined, now: () => 7 });
    const init = { method: 'POST', body: JSON.stringify(body) };
    return await checkedFetch(app)(new Request('http://localhost/agent/assistant/session', init));
  };

  test('is active when it is created', async () => {
    const response = await create({ user_id: null, agent_name: 'assistant', initial_state: {}, metadata: {} });
    expect([response.status, await response.json()]).toEqual([
      201,
      {
        session_id: expect.any(String) as string,
        agent: 'assistant',
        agent_name: 'assistant',
        user_id: null,
        status: 'active',
        created_at: 7,
        updated_at: 7,
        message_count: 0,
      },
    ]);
  });

  test('is not created for another agent than that of the URL', async () => {
    const response = await create({ agent_name: 'other' });
    expect([response.status, await response.json()]).toMatchObject([400, { code: 'invalid_request' }]);
  });

  test.each([
    ['chat', async ({ kit }: Client): Promise<unknown> => await say(kit, 'hi'), 2],
    ['execution', async ({ kit }: Client): Promise<unknown> => await runText(kit, answer('a')), 1],
  ] as const)('counts the messages of its history (%s)', async (kind, run, count) => {
    const talk = await client({ script: [answer('hello')], kind });
    const before = await talk.json('/');
    expect(before).toMatchObject({ agent_name: before['agent'], message_count: 0, updated_at: before['created_at'] });
    await run(talk);
    const { messages } = await talk.json('/history');
    const after = await talk.json('/');
    expect([after['message_count'], (messages as unknown[]).length]).toEqual([count, count]);
    const runs = (await talk.json('/runs'))['runs'] as { ended_at: number }[];
    expect(after['updated_at']).toBe(runs[0]?.ended_at);
  });

  test('has its variables as its state', async () => {
    const { json } = await client({ variables: { depth: 3 } });
    expect(await json('/state')).toMatchObject({ variables: { depth: 3 }, state: { depth: 3 } });
  });

  test('that is deleted answers with JSON if the client accepts it', async () => {
    const accept = { accept: 'application/json, text/plain, */*' };
    const { ask, kit } = await client();
    const response = await ask('/', undefined, { method: 'DELETE', headers: accept });
    const { session_id } = kit.session.record;
    expect([response.status, await response.json()]).toEqual([200, { status: 'ended', session_id }]);
    const other = await client();
    expect((await other.ask('/', undefined, { method: 'DELETE' })).status).toBe(204);
  });

  test('that is cancelled says whether anything was running', async () => {
    const { json } = await client();
    expect(await json('/cancel', {})).toMatchObject({ cancelled: false, status: 'not_found', execution_id: null });
  });
});

describe('[H1] a message', () => {
  test('is given as message, with metadata that the history returns', async () => {
    const { json, kit } = await client({ script: [answer('hello')] });
    await json('/message', { message: 'hi', metadata: { client: 'mk1-77' }, stream: false });
    expect(kit.requests[0]?.messages.at(-1)?.content).toContain('hi');
    expect(JSON.stringify(kit.requests)).not.toContain('mk1-77');
    expect((await json('/history'))['messages']).toMatchObject([
      { role: 'user', content: 'hi', metadata: { client: 'mk1-77' } },
      { role: 'assistant', content: 'hello' },
    ]);
  });

  test.each([[{}], [{ content: 'a', message: 'b' }]])('is refused as %j', async (body) => {
    const { ask } = await client();
    const response = await ask('/message', body);
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { detail: expect.stringContaining('"content"') as string, issues: [{ path: 'content' }] },
    ]);
  });

  const chunksOf = async (options: KitOptions): Promise<unknown> =>
    (await (await client(options)).json('/message', { content: 'go', stream: false }))['chunks'];
  const action = (id: string): object => ({ type: 'action', data: { id, name: 'echo', type: 'tool', mode: 'async' } });
  const done = { type: 'done', data: { message: 'Complete' } };

  test('is answered with its chunks in order', async () => {
    const chunks = await chunksOf({
      script: [`ignored <thought>plan ${call('a')}</thought>${call('b')}`, `<response>part</response>${answer('all')}`],
    });
    expect(chunks).toEqual([
      // A thought is whole when it ends.
      action('a'),
      { type: 'thought', data: 'plan' },
      action('b'),
      { type: 'content', data: 'part' },
      { type: 'content', data: 'all' },
      done,
    ]);
  });

  test('is answered with the bare text of a generation without tags', async () => {
    expect(await chunksOf({ script: ['plain words'] })).toEqual([{ type: 'content', data: 'plain words' }, done]);
  });

  test('that fails is answered with an error as the last chunk', async () => {
    const chunks = await chunksOf({
      stream: () => failedStream(new Error('broken')),
    });
    expect(chunks).toEqual([{ type: 'error', data: { error: expect.any(String) as string } }]);
  });

  test('[J8] that waits has its pending answer as a chunk, and after the decision only the whole one', async () => {
    const code = '<action type="python" mode="async" id="a">{"parameters": {"code": "7"}}</action>';
    const { json } = await client({
      script: [`${code}<response final="true">got $a</response>`],
      agent: (agent) => ({ ...agent, loop: { ...agent.loop, mode: 'supervised' } }),
      executors: { python: async () => ({ ok: true, output: 7 }) },
    });
    const message = { content: 'go', stream: false };
    const headers = { 'idempotency-key': 'k' };
    const contents = (chunks: unknown): unknown[] =>
      (chunks as { type: string; data: unknown }[]).filter(({ type }) => type !== 'action').map(({ data }) => data);
    const first = await json('/message', message, { headers });
    expect([first['status'], contents(first['chunks'])]).toEqual([
      'waiting',
      ['got [a: pending]', { message: 'Waiting for approvals' }],
    ]);
    const [{ approval_id: id } = { approval_id: '' }] = first['approvals'] as { approval_id: string }[];
    await json(`/approvals/${id}`, { approve: true });
    const again = await json('/message', message, { headers });
    expect(contents(again['chunks'])).toEqual(['got 7', { message: 'Complete' }]);
  });

  test('[C3] that waits for a client says so in the last chunk', async () => {
    const { json } = await client({
      tools: [toolOf({ type: 'client' }, { name: 'lamp', parameters: { type: 'object' } })],
      script: ['<action type="tool" mode="async" id="l">{"name": "lamp"}</action>'],
    });
    const { chunks } = await json('/message', { content: 'go', stream: false });
    expect((chunks as unknown[]).at(-1)).toEqual({ type: 'done', data: { message: 'Waiting for client tools' } });
  });

  test('has no chunks in other documents of its run', async () => {
    const { json } = await client({ script: [answer('hello')] });
    const { run_id: run, chunks } = await json('/message', { content: 'go', stream: false });
    expect(chunks).toHaveLength(2);
    expect(Object.keys(await json(`/runs/${run as string}`))).not.toContain('chunks');
  });
});
