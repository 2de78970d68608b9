/** Sessions that are created with an idempotency key (H1, K3, T5). */
import { expect, test } from 'vitest';
import { Client } from '../../src/client/index.ts';
import { limits } from '../../src/domain/limits.ts';
import { call, newSession, post } from './client.ts';

const create = async (
  key: string,
  body: object = {},
  { agent = 'assistant', token }: { readonly agent?: string; readonly token?: string } = {},
): Promise<Record<string, unknown>> => {
  const headers = { 'idempotency-key': key, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) };
  const response = await post(`/agent/${agent}/session`, body, headers);
  return { http: response.status, ...(await response.json<object>()) };
};
const idOf = async (...asked: Parameters<typeof create>): Promise<unknown> => (await create(...asked))['session_id'];
const tokenOf = async (user: string): Promise<string> =>
  (await (await post('/tokens', { user_id: user })).json<{ token: string }>()).token;

const BODY = {
  user_id: 'ann',
  metadata: { ticket: 7 },
  initial_state: { city: 'Oslo' },
  history: [{ role: 'user', content: 'Hello' }],
};

test('[H1] the same key with the same request gives the same session and answer, also at the same time and after use', async () => {
  const [first, second] = await Promise.all([create('same', BODY), create('same', BODY)]);
  expect(first).toMatchObject({ http: 201, user_id: 'ann', message_count: 1 });
  expect(second).toEqual(first);
  const path = `/agent/session/${String(first['session_id'])}`;
  await (await post(`${path}/message`, { content: 'what is 2 + 2', stream: false })).text();
  expect(await create('same', BODY)).toEqual(first);
  const session = await (await call(path)).json<object>();
  expect(session).toMatchObject({ metadata: { ticket: 7 }, message_count: 3 });
  expect(session).not.toHaveProperty('request_sha256');
  expect(await (await call(`${path}/state`)).json()).toMatchObject({ variables: { city: 'Oslo' } });
});

test.each<[string, object]>([
  ['metadata', { metadata: { ticket: 8 } }],
  ['variables', { initial_state: {} }],
  ['history', { history: [] }],
])('[H1] the same key with other %s is refused, and the first session stays as it is', async (_name, change) => {
  const key = `changed ${_name}`;
  const first = await create(key, BODY);
  expect(await create(key, { ...BODY, ...change })).toMatchObject({ http: 422, code: 'idempotency_mismatch' });
  expect(await create(key, BODY)).toEqual(first);
});

test('[T5] the same key of another user, or for another agent, gives another session', async () => {
  const [ann, bob] = [await tokenOf('ann'), await tokenOf('bob')];
  const ids = await Promise.all([
    idOf('k', {}, { token: ann }),
    idOf('k', {}, { token: bob }),
    idOf('k', {}, { token: ann, agent: 'researcher' }),
    idOf('k'),
    idOf('k2', {}, { token: ann }),
    newSession(),
  ]);
  expect(new Set(ids).size).toBe(ids.length);
  // The user of a token, or named by an API key.
  expect(await idOf('k', { user_id: 'ann' })).toBe(ids[0]);
  expect((await call(`/agent/session/${String(ids[1])}`, { headers: { authorization: `Bearer ${ann}` } })).status).toBe(
    404,
  );
});

test('[T5] after a deletion the key makes the session again: it has nothing of the first one', async () => {
  const first = await create('again', BODY);
  const path = `/agent/session/${String(first['session_id'])}`;
  const run = await (await post(`${path}/message`, { content: 'what is 2 + 2', stream: false })).json<object>();
  expect((await call(path, { method: 'DELETE' })).status).toBe(204);
  expect(await idOf('again', { user_id: 'ann' })).toBe(first['session_id']);
  expect(await (await call(path)).json()).toMatchObject({ message_count: 0, metadata: {} });
  expect((await call(`${path}/runs/${String((run as { run_id: string }).run_id)}`)).status).toBe(404);
});

test('[H4] a key that is too long is refused', async () => {
  expect(await create('x'.repeat(limits.idempotencyKeyChars + 1))).toMatchObject({
    http: 400,
    code: 'invalid_request',
  });
});

test('[K3] the client creates one session, although the first answer is lost', async () => {
  const made: string[] = [];
  const client = new Client({
    url: 'http://127.0.0.1:8787',
    fetch: async (url, init) => {
      const response = await call(new URL(url).pathname, init);
      made.push((await response.clone().json<{ session_id: string }>()).session_id);
      if (made.length === 1) throw new TypeError('the connection was lost');
      return response;
    },
  });
  const { id } = await client.createSession('assistant', { metadata: { a: 1 } });
  expect(made).toEqual([id, id]);
});
