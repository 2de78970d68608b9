/** The ids of sessions: those of an idempotency key, and sessions that are made again under the same id (H1, T5). */
import { runInDurableObject } from 'cloudflare:test';
import { describe, expect, test } from 'vitest';
import { EngineError } from '../../src/domain/errors.ts';
import type { SessionRpc } from '../../src/durable/env.ts';
import { sessionIdOf } from '../../src/durable/session-ids.ts';
import type { SessionRecord } from '../../src/domain/session.ts';
import { here, SESSIONS } from './bindings.ts';
import { storedKey } from './objects.ts';
import { call, events, newSession, post } from './client.ts';

const RUN_ID = /^run_[0-9a-f]{32}_[0-9a-f]{12}_1$/;

const recordOf = (id: string, change: Partial<SessionRecord> = {}): SessionRecord => ({
  session_id: id,
  agent: 'assistant',
  user_id: 'zoe',
  owner: null,
  kind: 'child',
  metadata: {},
  created_at: Date.now(),
  parent: { session_id: 'ses_parent', key: 'key', depth: 1 },
  ...change,
});

const REQUEST = {
  key: 'key',
  type: 'agent',
  name: 'assistant',
  message: 'calculate 6*7',
  inputs: {},
  budget: null,
} as const;

/** Starts the child with this id, and waits for its end. */
async function started(id: string, record = recordOf(id)): Promise<{ run: string; key: string }> {
  const run = await SESSIONS.getByName(id).startChild(record, REQUEST);
  await events(await call(`/agent/session/${id}/events?run=${run}`));
  return { run, key: await storedKey(id) };
}

const status = async (path: string, headers: Record<string, string> = {}): Promise<number> => {
  const response = await call(path, { headers });
  await response.body?.cancel();
  return response.status;
};

async function tokenFor(id: string): Promise<string> {
  const response = await post(`/agent/session/${id}/tokens`, { scopes: ['read'] });
  return (await response.json<{ token: string }>()).token;
}

describe('T5: a session that is made again under the same id', () => {
  test('has other run ids and another key; earlier run ids and tokens are refused', async () => {
    const id = await sessionIdOf(here, 'child of a test');
    const first = await started(id);
    const token = await tokenFor(id);
    expect(first.run).toMatch(RUN_ID);
    expect(first.key).toBe(`${id}_${first.run.split('_')[2] ?? ''}`);
    expect(await status(`/agent/session/${id}/runs/${first.run}`)).toBe(200);
    expect(await status(`/executions/${first.run}`)).toBe(200);
    expect(await status(`/agent/session/${id}`, { authorization: `Bearer ${token}` })).toBe(200);

    await call(`/agent/session/${id}`, { method: 'DELETE' });
    expect(await status(`/agent/session/${id}`, { authorization: `Bearer ${token}` })).toBe(404);

    const second = await started(id);
    expect(second.run).toMatch(RUN_ID);
    expect([second.run === first.run, second.key === first.key]).toEqual([false, false]);
    for (const path of [`/agent/session/${id}`, `/agent/session/${id}/history`]) {
      expect(await status(path, { authorization: `Bearer ${token}` })).toBe(404);
      expect(await status(path, { authorization: `Bearer ${await tokenFor(id)}` })).toBe(200);
    }
    for (const path of [
      '/agent/session/ID/runs/RUN',
      '/agent/session/ID/events?run=RUN',
      '/agent/session/ID/history?before=RUN',
      '/executions/RUN',
    ]) {
      const at = (run: string): string => path.replace('ID', id).replace('RUN', run);
      expect([path, await status(at(first.run))]).toEqual([path, 404]);
      expect([path, await status(at(second.run))]).toEqual([path, 200]);
    }
    // Cancelling an earlier run does not cancel the present one.
    const cancelled = await post(`/executions/${first.run}/cancel`, {});
    expect([cancelled.status, await cancelled.json()]).toMatchObject([404, { code: 'unknown_execution' }]);
    expect((await post(`/executions/${second.run}/cancel`, {})).status).toBe(200);
  });

  test('starting a child again changes nothing of it', async () => {
    const id = await sessionIdOf(here, 'child of another test');
    const first = await started(id);
    expect(await started(id, recordOf(id, { created_at: 0 }))).toEqual(first);
    // What a caller gives as the incarnation has no effect.
    expect(await started(id, recordOf(id, { incarnation: 'chosen' }))).toEqual(first);
  });

  test.each([
    ['another namespace', { owner: 'bob' }],
    ['another user', { user_id: 'bob' }],
    ['another agent', { agent: 'analyst' }],
    ['another parent', { parent: { session_id: 'ses_other', key: 'key', depth: 1 } }],
    ['another action', { parent: { session_id: 'ses_parent', key: 'other', depth: 1 } }],
    ['no parent', { kind: 'execution' }],
  ] as const)('a derived id authorises nothing: not for %s', async (_, change) => {
    const id = await sessionIdOf(here, 'child of a third test');
    await started(id);
    const refused = await runInDurableObject(SESSIONS.getByName(id), async (object) =>
      (object as unknown as SessionRpc)
        .startChild(recordOf(id, change), REQUEST)
        .then(() => 'started')
        .catch((fault: unknown) => (fault instanceof EngineError ? fault.code : 'failed')),
    );
    expect(refused).toBe('unknown_session');
  });
});

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

test('[H1] the same key with another request is refused, and the first session stays as it is', async () => {
  const first = await create('changed', BODY);
  for (const change of [{ metadata: { ticket: 8 } }, { initial_state: {} }, { history: [] }]) {
    expect(await create('changed', { ...BODY, ...change })).toMatchObject({ http: 422, code: 'idempotency_mismatch' });
  }
  expect(await create('changed', BODY)).toEqual(first);
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
  expect(await status(`/agent/session/${String(ids[1])}`, { authorization: `Bearer ${ann}` })).toBe(404);
});

test('[T5] after a deletion the key makes the session again: it has nothing of the first one', async () => {
  const first = await create('again', BODY);
  const path = `/agent/session/${String(first['session_id'])}`;
  const answer = await post(`${path}/message`, { content: 'what is 2 + 2', stream: false });
  const { run_id: run } = await answer.json<{ run_id: string }>();
  expect((await call(path, { method: 'DELETE' })).status).toBe(204);
  expect(await idOf('again', { user_id: 'ann' })).toBe(first['session_id']);
  expect(await (await call(path)).json()).toMatchObject({ message_count: 0, metadata: {} });
  expect(await status(`${path}/runs/${run}`)).toBe(404);
});
