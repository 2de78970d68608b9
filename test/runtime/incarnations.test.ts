/** A session that is deleted and made again under the same derived id shares nothing with the earlier one (T5). */
import { env } from 'cloudflare:workers';
import { abortAllDurableObjects, runInDurableObject } from 'cloudflare:test';
import { describe, expect, test } from 'vitest';
import { EngineError } from '../../src/domain/errors.ts';
import type { Env, SessionRpc } from '../../src/durable/env.ts';
import { sessionIdOf } from '../../src/durable/session-ids.ts';
import type { SessionRecord } from '../../src/domain/session.ts';
import type { RunResult } from '../../src/engine/run/run-result.ts';
import { Journal } from '../../src/journal/journal.ts';
import { durableSql } from '../../src/durable/sql-storage.ts';
import { SESSIONS } from './bindings.ts';
import { storedKey } from './stored-key.ts';
import { call, events, newSession, post } from './client.ts';

const PLATFORM = env as unknown as Env;
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
    const id = await sessionIdOf(PLATFORM, 'child of a test');
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
    for (const path of ['/agent/session/ID/runs/RUN', '/agent/session/ID/events?run=RUN', '/executions/RUN']) {
      const at = (run: string): string => path.replace('ID', id).replace('RUN', run);
      expect([path, await status(at(first.run))]).toEqual([path, 404]);
      expect([path, await status(at(second.run))]).toEqual([path, 200]);
    }
    // Cancelling an earlier run does not cancel the present one.
    const cancelled = await post(`/executions/${first.run}/cancel`, {});
    expect([cancelled.status, await cancelled.json()]).toMatchObject([404, { code: 'unknown_execution' }]);
    expect((await post(`/executions/${second.run}/cancel`, {})).status).toBe(200);
  });

  test('a cursor of the earlier one is refused', async () => {
    const id = await sessionIdOf(PLATFORM, 'child of a test of cursors');
    const first = await started(id);
    await call(`/agent/session/${id}`, { method: 'DELETE' });
    const second = await started(id);
    for (const path of ['history', 'runs']) {
      expect([path, await status(`/agent/session/${id}/${path}?before=${first.run}`)]).toEqual([path, 404]);
      expect([path, await status(`/agent/session/${id}/${path}?before=${second.run}`)]).toEqual([path, 200]);
    }
  });

  test('of another user or namespace: the earlier user token is refused', async () => {
    const id = await sessionIdOf(PLATFORM, 'child of a test of user tokens');
    const issued = await post('/tokens', { user_id: 'zoe', scopes: ['read'] });
    const { token } = await issued.json<{ token: string }>();
    const authorization = `Bearer ${token}`;
    const first = await started(id);
    expect(await status(`/agent/session/${id}`, { authorization })).toBe(200);
    await call(`/agent/session/${id}`, { method: 'DELETE' });
    expect(await status(`/agent/session/${id}`, { authorization })).toBe(404);
    await started(id, recordOf(id, { user_id: 'bob' }));
    for (const path of ['', '/history', `/runs/${first.run}`, `/events?run=${first.run}`]) {
      expect([path, await status(`/agent/session/${id}${path}`, { authorization })]).toEqual([path, 404]);
    }
  });

  test('starting a child again changes nothing of it', async () => {
    const id = await sessionIdOf(PLATFORM, 'child of another test');
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
    const id = await sessionIdOf(PLATFORM, 'child of a third test');
    await started(id);
    const refused = await runInDurableObject(SESSIONS.getByName(id), async (object) =>
      (object as unknown as SessionRpc)
        .startChild(recordOf(id, change), REQUEST)
        .then(() => 'started')
        .catch((fault: unknown) => (fault instanceof EngineError ? fault.code : 'failed')),
    );
    expect(refused).toBe('unknown_session');
  });

  test('its runs in the list of executions and its artifacts have its incarnation', async () => {
    const id = await newSession('assistant');
    const result = await (
      await post(`/agent/session/${id}/message`, { content: 'hello', stream: false })
    ).json<RunResult>();
    const incarnation = result.run_id.split('_')[2] ?? '';
    expect(result.run_id).toBe(`run_${id.slice('ses_'.length)}_${incarnation}_1`);
    const { executions } = await (await call('/executions')).json<{ executions: { run_id: string }[] }>();
    expect(executions.map(({ run_id: run }) => run)).toContain(result.run_id);
    // Also not in the answer about the session, which clients store.
    expect(Object.keys(await (await call(`/agent/session/${id}`)).json<object>())).not.toContain('incarnation');
    expect(await status(`/agent/session/${id}`)).toBe(200);
    await call(`/agent/session/${id}`, { method: 'DELETE' });
    const after = await (await call('/executions')).json<{ executions: { run_id: string }[] }>();
    expect(after.executions.map(({ run_id: run }) => run)).not.toContain(result.run_id);
  });

  test('what an earlier version stored has no incarnation and keeps its ids', async () => {
    const id = await sessionIdOf(PLATFORM, 'made by an earlier version');
    await runInDurableObject(SESSIONS.getByName(id), async (_object, { storage }) => {
      const journal = new Journal(durableSql(storage));
      journal.create(recordOf(id, { kind: 'chat', user_id: null }));
      await journal.sync();
    });
    await abortAllDurableObjects();
    const result = await (
      await post(`/agent/session/${id}/message`, { content: 'hello', stream: false })
    ).json<RunResult>();
    expect(result.run_id).toBe(`run_${id.slice('ses_'.length)}_1`);
    const authorization = `Bearer ${await tokenFor(id)}`;
    expect(await status(`/agent/session/${id}/runs/${result.run_id}`, { authorization })).toBe(200);
    expect(await status(`/executions/${result.run_id}`)).toBe(200);
  });
});
