import { abortAllDurableObjects, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { chatRecord, call, execute, newSession, post } from './client.ts';
import type { SessionObject } from '../../src/durable/objects/session-object.ts';
import { SESSIONS } from './bindings.ts';

/** Moves everything in the session back in time. */
async function age(id: string, ms: number): Promise<void> {
  await runInDurableObject(SESSIONS.getByName(id), async (_object, { storage }) => {
    const record = JSON.parse(String(storage.sql.exec(`SELECT data FROM session`).one()['data'])) as {
      created_at: number;
    };
    storage.sql.exec(`UPDATE session SET data = ?`, JSON.stringify({ ...record, created_at: record.created_at - ms }));
    // A session without messages has no runs, and no table for them.
    const [runs] = storage.sql.exec(`SELECT name FROM sqlite_master WHERE name = 'runs'`).toArray();
    if (runs !== undefined)
      storage.sql.exec(`UPDATE runs SET started_at = started_at - ?1, ended_at = ended_at - ?1`, ms);
    await storage.sync();
  });
  await abortAllDurableObjects();
}

test('[H1] the alarm deletes a session 30 days after its last activity, with all its data', async () => {
  const id = await newSession();
  const path = `/agent/session/${id}`;
  await (await post(`${path}/message`, { content: 'what is 2 + 2', stream: false })).text();
  await age(id, limits.sessionExpiryMs - 60_000);
  await runDurableObjectAlarm(SESSIONS.getByName(id));
  expect((await call(path)).status).toBe(200);
  await age(id, 120_000);
  await runDurableObjectAlarm(SESSIONS.getByName(id));
  await expect.poll(async () => (await call(path)).status).toBe(404);
  await runInDurableObject(SESSIONS.getByName(id), (_object, { storage }) => {
    const tables = storage.sql.exec(`SELECT name FROM sqlite_master WHERE name IN ('events', 'runs', 'session')`);
    expect(tables.toArray()).toEqual([]);
  });
});

test('[H1] a session without any message expires too', async () => {
  const id = await newSession();
  const armed = (): Promise<number | null> =>
    runInDurableObject(SESSIONS.getByName(id), (_object, { storage }) => storage.getAlarm());
  // Once the directory has it (C6).
  await expect.poll(armed).toBeGreaterThan(Date.now() + limits.sessionExpiryMs - 60_000);
  await age(id, limits.sessionExpiryMs + 1);
  await runDurableObjectAlarm(SESSIONS.getByName(id));
  await expect.poll(async () => (await call(`/agent/session/${id}`)).status).toBe(404);
});

test('[H1] a session whose initial state is too large is not created', async () => {
  const id = `ses_${'d'.repeat(32)}`;
  const record = chatRecord(id);
  const state = { small: 1, large: 'x'.repeat(limits.variableBytes) };
  const refused = runInDurableObject(SESSIONS.getByName(id), async (object) => {
    await object.create(record, state);
  });
  await expect(refused).rejects.toThrow('"large"');
  // Directly, because the Worker knows that no session has this id.
  const read = (object: SessionObject): Promise<Response> => object.fetch(new Request('http://session/'));
  expect((await runInDurableObject(SESSIONS.getByName(id), read)).status).toBe(404);
  expect((await post('/agent/assistant/session', { initial_state: state })).status).toBe(400);
  const metadata = { note: 'x'.repeat(limits.metadataBytes) };
  expect((await post('/agent/assistant/session', { metadata })).status).toBe(400);
});

test('[H1] [H2] a message that arrives while a session and its children are being deleted ends', async () => {
  const id = await newSession();
  const path = `/agent/session/${id}`;
  await runInDurableObject(SESSIONS.getByName(id), async (object, { storage }) => {
    // So many that their deletion takes a while.
    for (let n = 0; n < 20; n += 1) storage.kv.put(`child:ses_${String(n).padStart(32, 'b')}`, true);
    const deleted = object.fetch(new Request('http://session/', { method: 'DELETE' }));
    const init = { method: 'POST', body: JSON.stringify({ content: 'what is 2 + 2' }) };
    const answer = await object.fetch(new Request('http://session/message', init));
    // The deletion cancels a message that arrived before it began; no stream stays open.
    expect(await answer.text()).toMatch(/"code":"unknown_session"|event: agent_cancelled/);
    expect((await deleted).status).toBe(204);
    expect(storage.sql.exec(`SELECT name FROM sqlite_master WHERE name = 'runs'`).toArray()).toEqual([]);
  });
  expect((await call(path)).status).toBe(404);
});

test('[H1] a deleted execution is no longer listed', async () => {
  const listed = async (): Promise<string[]> => {
    const { executions } = await (await call('/executions')).json<{ executions: { session_id: string }[] }>();
    return executions.map(({ session_id: id }) => id);
  };
  const result = await execute('<response final="true">gone soon</response>');
  await expect.poll(listed).toContain(result.session_id);
  expect((await call(`/agent/session/${result.session_id}`, { method: 'DELETE' })).status).toBe(204);
  await expect.poll(listed).not.toContain(result.session_id);
});
