/** Other protocols at the Worker: who may do what (E1 to E3, T1, T3). */
import { describe, expect, test } from 'vitest';
import { EngineError, unknownSession } from '../../src/domain/errors.ts';
import type { SessionRecord } from '../../src/domain/session.ts';
import { parseApiKeys } from '../../src/http/api-keys.ts';
import { problemResponse } from '../../src/http/problem.ts';
import type { SurfaceCall } from '../../src/http/surfaces/session-surface.ts';
import { Tokens } from '../../src/http/tokens.ts';
import { bundled } from '../support/bundled.ts';
import { edgeApp, noManifests } from './edge-app.ts';

const KEY = { authorization: 'Bearer k-ann' };
const user = (content: string) => ({ role: 'user', content });
/** A session that exists. */
const KNOWN = `ses_${'0'.repeat(32)}`;
const BODY = { model: 'assistant', messages: [user('Hello')] };

function edge() {
  const calls: { readonly id: string; readonly call: SurfaceCall }[] = [];
  const opened: SessionRecord[] = [];
  const faults = new Map<string, EngineError>();
  const app = edgeApp({
    auth: { keys: parseApiKeys('ann:admin:k-ann'), allowedOrigins: [] },
    tokens: new Tokens(
      () => 'a secret for signing that nobody knows',
      () => 0,
    ),
    agent: async (name) => (name === 'none' ? null : bundled.agent('assistant')),
    manifests: {
      ...noManifests,
      list: async () => ['assistant', 'writer'].map((name) => ({ name, summary: '' })) as never,
    },
    openSession: async (record) => {
      opened.push(record);
      return record;
    },
    forward: async (id, path, request) => {
      if (path === '/-/incarnation') return Response.json({ incarnation: 'i1' });
      calls.push({ id, call: (await request.json()) as SurfaceCall });
      const fault = faults.get(id);
      return fault === undefined ? new Response('data: {}\n\n') : problemResponse(fault);
    },
  });
  const send = async (path: string, body: object | null, headers: Record<string, string>): Promise<Response> =>
    await app.fetch(
      new Request(`http://127.0.0.1:8787${path}`, {
        method: body === null ? 'GET' : 'POST',
        ...(body === null ? {} : { body: JSON.stringify(body) }),
        headers: { host: '127.0.0.1:8787', ...headers },
      }),
    );
  const bearer = async (body: object = {}): Promise<Record<string, string>> => {
    const made = await send('/tokens', { user_id: 'zoë', ...body }, KEY);
    return { authorization: `Bearer ${((await made.json()) as { token: string }).token}` };
  };
  return { calls, opened, faults, send, bearer };
}

const errorOf = async (response: Response): Promise<readonly [number, string]> => [
  response.status,
  ((await response.json()) as { error: { code: string } }).error.code,
];

describe('[E2] chat completions with a user token', () => {
  test('make a session of the user, and may give no history', async () => {
    const on = edge();
    const token = await on.bearer();
    expect((await on.send('/v1/chat/completions', BODY, token)).status).toBe(200);
    expect(on.opened[0]).toMatchObject({ user_id: 'zoë', ephemeral: true, agent: 'assistant', owner: 'ann' });
    const messages = [user('I'), { role: 'assistant', content: 'You' }, user('Hello')];
    const refused = await on.send('/v1/chat/completions', { ...BODY, messages }, token);
    expect(await errorOf(refused)).toEqual([403, 'forbidden']);
    expect(on.opened).toHaveLength(1);
  });

  test('reach only the agents and the surfaces of the token', async () => {
    const on = edge();
    const writer = await on.bearer({ agents: ['writer'] });
    expect(await errorOf(await on.send('/v1/chat/completions', BODY, writer))).toEqual([403, 'forbidden']);
    const models = (await (await on.send('/v1/models', null, writer)).json()) as { data: { id: string }[] };
    expect(models.data.map(({ id }) => id)).toEqual(['writer']);
    const http = await on.bearer({ surfaces: ['http'] });
    expect(await errorOf(await on.send('/v1/chat/completions', BODY, http))).toEqual([403, 'forbidden']);
    expect(on.calls).toHaveLength(0);
  });

  test('two users with the same name for a conversation have different sessions', async () => {
    const on = edge();
    for (const headers of [await on.bearer(), await on.bearer({ user_id: 'Bob' }), KEY]) {
      await on.send('/v1/chat/completions', BODY, { ...headers, 'x-session-id': 'chat' });
    }
    expect(on.calls.map(({ call }) => call.open?.user_id)).toEqual(['zoë', 'Bob', null]);
  });
});

describe('[E1][E2] a session token', () => {
  const ID = `ses_${'a'.repeat(32)}`;
  const tokenOf = async (on: ReturnType<typeof edge>): Promise<Record<string, string>> => {
    const made = await on.send(`/agent/session/${ID}/tokens`, { scopes: ['read', 'message'] }, KEY);
    return { authorization: `Bearer ${((await made.json()) as { token: string }).token}` };
  };
  const messages = [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'Hello' }] }];

  test('is for the session that the request names by its id', async () => {
    const on = edge();
    const token = await tokenOf(on);
    on.calls.length = 0;
    const own = await Promise.all([
      on.send('/ai/assistant/chat', { id: ID, messages }, token),
      on.send(`/ai/assistant/chat/${ID}/stream`, null, token),
      on.send(`/ai/assistant/chat/${ID}/stop`, {}, token),
      on.send('/v1/chat/completions', BODY, { ...token, 'x-session-id': ID }),
    ]);
    expect(own.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(on.calls.map(({ id, call }) => [id, call.open])).toEqual(own.map(() => [ID, null]));
  });

  test.each<readonly [string, object | null, Record<string, string>]>([
    ['/ai/assistant/chat', { id: 'other', messages }, {}],
    ['/ai/assistant/chat/other/stream', null, {}],
    ['/v1/chat/completions', BODY, {}],
    ['/v1/chat/completions', BODY, { 'x-session-id': 'other' }],
    ['/v1/models', null, {}],
  ])('is refused by %s %j %j', async (path, body, headers) => {
    const on = edge();
    const token = await tokenOf(on);
    on.calls.length = 0;
    const response = await on.send(path, body, { ...token, ...headers });
    expect([response.status, await response.text()]).toEqual([403, expect.stringContaining('forbidden')]);
    expect([on.calls, on.opened]).toEqual([[], []]);
  });
});

describe('[E2] requests that continue', () => {
  /** A call id of the session `ses_00…`, as the edge of the tests makes ids. */
  const CALL = `call_${'A'.repeat(30)}`;
  const messages = [
    user('Hello'),
    { role: 'assistant', tool_calls: [{ id: CALL, type: 'function', function: { name: 'f', arguments: '{}' } }] },
    { role: 'tool', tool_call_id: CALL, content: '{"a":1}' },
  ];

  test('results go to the session of their calls', async () => {
    const on = edge();
    await on.send('/v1/chat/completions', { ...BODY, messages }, KEY);
    expect(on.calls.map(({ id }) => id)).toEqual([`ses_${'0'.repeat(32)}`]);
    expect(on.calls[0]?.call.command).toMatchObject({ answers: [{ callId: CALL, output: { a: 1 } }], message: null });
    expect(on.opened).toHaveLength(0);
  });

  test('results of a session that is gone are history', async () => {
    const on = edge();
    on.faults.set(`ses_${'0'.repeat(32)}`, unknownSession());
    expect((await on.send('/v1/chat/completions', { ...BODY, messages }, KEY)).status).toBe(200);
    expect(on.calls.map(({ call: { command } }) => command.type === 'run' && command.message?.content)).toEqual([
      undefined,
      'Continue.',
    ]);
    expect(on.opened).toHaveLength(1);
  });
});

describe('[E2] responses with tokens', () => {
  const SESSION = '0'.repeat(32);
  const ID = `resp_${SESSION}_0a1b2c3d4e5f_2`;
  const ASK = { model: 'assistant', input: 'Hello' };

  test('a user token makes a session of the user that is kept, and may give no history', async () => {
    const on = edge();
    const token = await on.bearer();
    expect((await on.send('/v1/responses', ASK, token)).status).toBe(200);
    expect(on.opened[0]).toMatchObject({ user_id: 'zoë', agent: 'assistant', owner: 'ann' });
    expect(on.opened[0]?.ephemeral).toBeUndefined();
    const input = [user('I'), { role: 'assistant', content: 'You' }, user('Hello')];
    expect(await errorOf(await on.send('/v1/responses', { ...ASK, input }, token))).toEqual([403, 'forbidden']);
    const writer = await on.bearer({ agents: ['writer'] });
    expect(await errorOf(await on.send('/v1/responses', ASK, writer))).toEqual([403, 'forbidden']);
  });

  test('the session of a response decides who may read, continue and cancel it', async () => {
    const on = edge();
    const token = await on.bearer({ agents: ['assistant'] });
    await on.send('/v1/responses', { ...ASK, previous_response_id: ID }, token);
    await on.send(`/v1/responses/${ID}?stream=true&include[]=a&include[]=b`, null, token);
    await on.send(`/v1/responses/${ID}/cancel`, {}, token);
    expect(on.calls.map(({ id, call: { agent, command } }) => [id, agent, command.type])).toEqual([
      [`ses_${SESSION}`, 'assistant', 'run'],
      [`ses_${SESSION}`, null, 'follow'],
      [`ses_${SESSION}`, null, 'cancel'],
    ]);
    expect(on.opened).toHaveLength(0);
    const reader = await on.bearer({ scopes: ['read'] });
    expect(await errorOf(await on.send(`/v1/responses/${ID}/cancel`, {}, reader))).toEqual([403, 'forbidden']);
    expect(await errorOf(await on.send(`/v1/responses/${ID}?starting_after=x`, null, reader))).toEqual([
      400,
      'invalid_request',
    ]);
  });
});

test.each([
  ['call_settled', 409, 'false'],
  ['unknown_call', 404, null],
  ['queue_full', 429, null],
] as const)('[E2] clients are told not to repeat a conflict: %s', async (code, status, retries) => {
  const on = edge();
  on.faults.set(KNOWN, new EngineError(code, 'The call is closed'));
  const body = { model: 'assistant', input: 'Hello', previous_response_id: `resp_${KNOWN.slice(4)}_0a1b2c3d4e5f_2` };
  const refused = await on.send('/v1/responses', body, KEY);
  expect([refused.status, refused.headers.get('x-should-retry')]).toEqual([status, retries]);
  expect(await errorOf(refused)).toEqual([status, code]);
});

describe('a route that a protocol has and we do not have', () => {
  test.each([
    ['GET', '/v1/embeddings', 404, 'not_found'],
    ['POST', '/v1/models', 405, 'method_not_allowed'],
    ['POST', '/agui/assistant/more', 404, 'not_found'],
  ])('[E2] [E3] [H4] %s %s is an error in both forms', async (method, path, status, code) => {
    const response = await edge().send(path, method === 'GET' ? null : {}, KEY);
    expect(await response.json()).toMatchObject({ status, code, detail: expect.any(String), error: { code } });
    expect(response.status).toBe(status);
  });

  test('[E1] is a text for the AI SDK', async () => {
    const response = await edge().send('/ai/assistant/talk', {}, KEY);
    expect([response.status, await response.text()]).toEqual([404, expect.stringContaining('(not_found)')]);
  });
});
