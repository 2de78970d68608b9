/** Hostile members of a request for a user token (T3): refused with a code, or without effect on the object's headers. */
import { decode, sign } from 'hono/jwt';
import { expect, test } from 'vitest';
import { bundled } from '../support/bundled.ts';
import { limits } from '../../src/domain/limits.ts';
import { parseApiKeys } from '../../src/http/api-keys.ts';
import { USER_HEADER, WORKER_HEADERS } from '../../src/http/session-env.ts';
import { Tokens } from '../../src/http/tokens.ts';
import { edgeApp } from './edge-app.ts';

const KEY = 'k'.repeat(40);
const BODY = { user_id: 'ann', scopes: ['read', 'message'] };
const many = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));

interface Posted {
  readonly status: number;
  readonly body: { readonly token?: string; readonly code?: string; readonly detail?: string };
  /** What the session's object got; null if it was not called. */
  readonly forwarded: Headers | null;
}

async function post(path: string, body: object, key = KEY): Promise<Posted> {
  let forwarded: Headers | null = null;
  const app = edgeApp({
    auth: { keys: parseApiKeys(`owner:admin:${KEY}`), allowedOrigins: [] },
    tokens: new Tokens(
      () => 's'.repeat(limits.tokenSecretChars),
      () => 0,
    ),
    agent: async (name) => bundled.agent(name),
    forward: async (_id, _path, { headers }) => {
      forwarded = headers;
      return Response.json({});
    },
  });
  const headers = { authorization: `Bearer ${key}`, [USER_HEADER]: 'root' };
  const request = new Request(`http://localhost${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  const response = await app.fetch(request);
  return { status: response.status, body: (await response.json()) as Posted['body'], forwarded };
}

test.each([
  ['a user id that is not valid Unicode', { user_id: '\ud800' }, 'user_id'],
  ['a user id of a megabyte', { user_id: 'x'.repeat(1_000_000) }, 'user_id'],
  ['100,000 agents', { agents: many(100_000, () => 'assistant') }, 'agents'],
  ['agents that do not fit into a token', { agents: many(limits.tokenAgents, (at) => `${at}`.repeat(64)) }, 'unknown'],
  ['100,000 scopes', { scopes: many(100_000, () => 'read') }, 'scopes'],
  ['a scope with control characters', { scopes: ['read\r\nmessage'] }, 'scopes'],
  ['an endless lifetime', { expires_in: Number.MAX_SAFE_INTEGER }, 'expires_in'],
  ['4,900 unknown members', Object.fromEntries(many(4_900, (at) => [`agent${at}`, 1])), 'unknown member'],
])('[T3] [H8] %s is refused', async (_title, members, detail) => {
  const { status, body } = await post('/tokens', { ...BODY, ...members });
  expect([status, body.code]).toEqual(detail === 'unknown' ? [404, 'unknown_agent'] : [400, 'invalid_request']);
  expect(body.detail).toContain(detail === 'unknown' ? 'No agent' : detail);
});

test.each([
  ['a user of a megabyte', { sub: 'x'.repeat(1_000_000), scope: 'read message' }],
  ['100,000 scopes', { sub: 'ann', scope: 'read message '.repeat(50_000) }],
])('[T3] [T1] a token with %s is refused, although its signature is valid', async (_title, claims) => {
  const secret = 's'.repeat(limits.tokenSecretChars);
  const small = await post('/tokens', BODY);
  const { payload } = decode(small.body.token ?? '');
  const token = await sign({ ...payload, ...claims }, secret);
  const path = `/agent/session/ses_${'1'.repeat(32)}/message`;
  const { status, body, forwarded } = await post(path, { content: 'x' }, token);
  expect([status, body.code, forwarded]).toEqual([401, 'unauthorized', null]);
  // The same claims within the length are accepted.
  expect((await post(path, { content: 'x' }, await sign({ ...payload }, secret))).status).toBe(200);
});

test('[T3] a user id with other characters than ASCII reaches the object in one header', async () => {
  const userId = `a%0d%0a é\u2028😀, ${USER_HEADER}: root`;
  const { body } = await post('/tokens', { ...BODY, user_id: userId });
  const { forwarded } = await post(`/agent/session/ses_${'1'.repeat(32)}/message`, { content: 'x' }, body.token);
  expect(decodeURIComponent(forwarded?.get(USER_HEADER) ?? '')).toBe(userId);
});

test('[T3] what a client writes into the headers of the Worker does not reach the object', async () => {
  const { forwarded } = await post(`/agent/session/ses_${'1'.repeat(32)}/message`, { content: 'x' });
  expect(WORKER_HEADERS.map((name) => forwarded?.get(name) ?? null).filter((value) => value !== null)).toEqual([
    'owner',
  ]);
});
