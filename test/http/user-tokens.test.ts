/** User tokens: what they are made for, and the sessions that they create (T3). */
import { decode, sign } from 'hono/jwt';
import { describe, expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import type { ResolvedAgent } from '../../src/domain/manifests/resolved.ts';
import type { SessionRecord } from '../../src/domain/session.ts';
import { parseApiKeys } from '../../src/http/api-keys.ts';
import { AGENTS_HEADER, INCARNATION_HEADER, SCOPES_HEADER, USER_HEADER } from '../../src/http/session-env.ts';
import { Tokens } from '../../src/http/tokens.ts';
import { checkedFetch } from '../support/response-check.ts';
import { SURFACE_NAMES } from '../../src/surfaces/surface.ts';
import { edgeApp } from './edge-app.ts';

const SECRET = 'a secret for signing that nobody knows';
const ID = `ses_${'1'.repeat(32)}`;
const NOW = 1_790_000_000_000;
const PAGE = 'https://app.example';
const ANN = { authorization: 'Bearer k-ann' };

function edge(keys = 'ann:run:k-ann,bob:admin:k-bob') {
  const created: SessionRecord[] = [];
  const forwarded: Record<string, string | null>[] = [];
  const app = edgeApp({
    auth: { keys: parseApiKeys(keys), allowedOrigins: [PAGE] },
    tokens: new Tokens(
      () => SECRET,
      () => NOW,
    ),
    now: () => NOW,
    agent: async (name) =>
      ['assistant', 'analyst', 'research_orchestrator'].includes(name) ? ({ agent: {} } as ResolvedAgent) : null,
    createSession: async (record) => void created.push(record),
    forward: async (_id, _path, request) => {
      const names = [USER_HEADER, AGENTS_HEADER, SCOPES_HEADER, INCARNATION_HEADER];
      forwarded.push(Object.fromEntries(names.map((name) => [name, request.headers.get(name)])));
      return new Response('yes');
    },
  });
  const fetch = checkedFetch(app);
  const post = (path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(
      new Request(`http://127.0.0.1:8787${path}`, {
        method: 'POST',
        body: JSON.stringify(body),
        headers: { host: '127.0.0.1:8787', ...headers },
      }),
    );
  return { created, forwarded, fetch, post };
}

async function bearer(on: ReturnType<typeof edge>, body: object = {}): Promise<{ authorization: string }> {
  const response = await on.post('/tokens', { user_id: 'zoë', ...body }, ANN);
  expect(response.status).toBe(201);
  return { authorization: `Bearer ${((await response.json()) as { token: string }).token}` };
}

const codeOf = async (response: Response): Promise<string> =>
  `${response.status} ${((await response.json()) as { code: string }).code}`;

describe('[T3] a user token', () => {
  test('is made by any key of a namespace, for a user, agents, surfaces, scopes and a time', async () => {
    const on = edge();
    const body = { user_id: 'zoë', agents: ['assistant'], scopes: ['read', 'message', 'tools'], expires_in: 60 };
    const response = await on.post('/tokens', body, ANN);
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(await response.json()).toEqual({
      token: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
      user_id: 'zoë',
      agents: ['assistant'],
      surfaces: ['http', ...SURFACE_NAMES],
      scopes: ['read', 'message', 'tools'],
      expires_at: NOW + 60_000,
    });
    expect(await codeOf(await on.post('/tokens', body))).toBe('401 unauthorized');
    expect(await codeOf(await on.post('/tokens', body, await bearer(on)))).toBe('403 forbidden');
  });

  test.each([
    [{ user_id: '' }],
    [{ user_id: 7 }],
    [{ user_id: 'x'.repeat(257) }],
    [{ user_id: '\ud800' }],
    [{}],
    [{ user_id: 'z', agents: [] }],
    [{ user_id: 'z', agents: Array.from({ length: limits.tokenAgents + 1 }, () => 'assistant') }],
    [{ user_id: 'z', surfaces: ['smtp'] }],
    [{ user_id: 'z', scopes: ['admin'] }],
    [{ user_id: 'z', scopes: [] }],
    [{ user_id: 'z', expires_in: limits.sessionTokenMaxSeconds + 1 }],
    [{ user_id: 'z', agent: ['assistant'] }],
    [{ user_id: '語'.repeat(256), agents: Array.from({ length: limits.tokenAgents }, () => 'research_orchestrator') }],
  ])('is not made from %j', async (body) => {
    expect(await codeOf(await edge().post('/tokens', body, ANN))).toBe('400 invalid_request');
  });

  test('is not made for an unknown agent', async () => {
    expect(await codeOf(await edge().post('/tokens', { user_id: 'z', agents: ['nobody'] }, ANN))).toBe(
      '404 unknown_agent',
    );
  });

  test('creates sessions of its own user only', async () => {
    const on = edge();
    const token = await bearer(on);
    for (const body of [{}, { user_id: 'zoë' }, { user_id: null }]) {
      const response = await on.post('/agent/assistant/session', body, token);
      expect([response.status, await response.json()]).toMatchObject([201, { user_id: 'zoë' }]);
    }
    expect(on.created.map(({ user_id: id, owner }) => [id, owner])).toEqual(
      Array.from({ length: 3 }, () => ['zoë', 'ann']),
    );
    expect(await codeOf(await on.post('/agent/assistant/session', { user_id: 'bob' }, token))).toBe('403 forbidden');
    expect(on.created).toHaveLength(3);
  });

  test('creates sessions with its own agents only, and needs the scope message', async () => {
    const on = edge();
    const token = await bearer(on, { agents: ['assistant'] });
    expect((await on.post('/agent/assistant/session', {}, token)).status).toBe(201);
    expect(await codeOf(await on.post('/agent/analyst/session', {}, token))).toBe('403 forbidden');
    // An agent that does not exist gives the same answer as one that is not listed.
    expect(await codeOf(await on.post('/agent/nobody/session', {}, token))).toBe('403 forbidden');
    const reading = await bearer(on, { scopes: ['read'] });
    expect(await codeOf(await on.post('/agent/assistant/session', {}, reading))).toBe('403 forbidden');
  });

  test('names its user, agents and scopes to the session, and no incarnation', async () => {
    const on = edge();
    const userId = `a%0d%0a zoë\u2028😀, ${USER_HEADER}: root`;
    const token = await bearer(on, { user_id: userId, agents: ['assistant', 'analyst'], scopes: ['read'] });
    await on.fetch(new Request(`http://127.0.0.1:8787/agent/session/${ID}`, { headers: token }));
    expect(on.forwarded).toEqual([
      {
        [USER_HEADER]: encodeURIComponent(userId),
        [AGENTS_HEADER]: 'assistant analyst',
        [SCOPES_HEADER]: 'read',
        [INCARNATION_HEADER]: null,
      },
    ]);
  });

  test.each([
    ['a user of a megabyte', { sub: 'x'.repeat(1_000_000) }],
    ['100,000 scopes', { scope: 'read message '.repeat(50_000) }],
  ])('with %s is refused, although its signature is valid', async (_title, claims) => {
    const on = edge();
    const { payload } = decode((await bearer(on)).authorization.slice('Bearer '.length));
    const ask = async (more: object): Promise<number> => {
      const authorization = `Bearer ${await sign({ ...payload, ...more }, SECRET)}`;
      return (await on.post(`/agent/session/${ID}/message`, { content: 'x' }, { authorization })).status;
    };
    expect([await ask(claims), await ask({})]).toEqual([401, 200]);
    expect(on.forwarded).toHaveLength(1);
  });

  test('is never taken for a session token, nor a session token for it', async () => {
    const on = edge();
    const exp = NOW / 1_000 + 60;
    const claims = { own: 'ann', scope: 'read message', exp };
    const ask = async (payload: Record<string, unknown>): Promise<number> => {
      const headers = { authorization: `Bearer ${await sign(payload as never, SECRET, 'HS256')}` };
      return (await on.fetch(new Request(`http://127.0.0.1:8787/agent/session/${ID}`, { headers }))).status;
    };
    expect(await ask({ ...claims, aud: 'cortex-edge:user', sub: 'zoë', srf: ['http'] })).toBe(200);
    // A user who is called like a session.
    expect(await ask({ ...claims, aud: 'cortex-edge:session', sub: 'zoë', srf: ['http'] })).toBe(404);
    for (const aud of ['cortex-edge', ['cortex-edge:user'], ['cortex-edge:session', 'cortex-edge:user'], null, 7]) {
      expect(await ask({ ...claims, aud, sub: ID, srf: ['http'] })).toBe(401);
    }
    // Without surfaces or with other types.
    expect(await ask({ ...claims, aud: 'cortex-edge:user', sub: 'zoë' })).toBe(401);
    expect(await ask({ ...claims, aud: 'cortex-edge:user', sub: 'zoë', srf: ['http'], agt: 'assistant' })).toBe(401);
    expect(await ask({ ...claims, aud: 'cortex-edge:session', sub: ID, inc: 7 })).toBe(401);
  });

  test('ends with the last key of its namespace', async () => {
    const token = await bearer(edge());
    const path = `http://127.0.0.1:8787/agent/session/${ID}`;
    expect((await edge('new:run:k@ann').fetch(new Request(path, { headers: token }))).status).toBe(200);
    expect((await edge('bob:admin:k-bob').fetch(new Request(path, { headers: token }))).status).toBe(401);
  });
});
