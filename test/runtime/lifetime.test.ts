/** The life of a session's object: its creation with a history, its alarm, its expiry and its deletion (C1, J2, H1). */
import { abortAllDurableObjects, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { newSessionId } from '../../src/durable/session-ids.ts';
import { PRINCIPAL_HEADER } from '../../src/http/session-env.ts';
import { alarmOf } from './objects.ts';
import { call, chatRecord, events, newSession, post } from './client.ts';
import { here, SESSIONS } from './bindings.ts';
import type { SeededMessage } from '../../src/domain/seeded.ts';

test('[J2] the alarm is the watchdog during a run, and the session’s expiry otherwise', async () => {
  const session = await newSession();
  // Once the directory has it (C6).
  await expect.poll(() => alarmOf(session)).toBeGreaterThan(Date.now() + limits.sessionExpiryMs - 60_000);
  const response = await post(`/agent/session/${session}/message`, { content: 'hello' });
  await events(response, ({ type }) => type === 'iteration_started');
  expect((await alarmOf(session)) ?? 0).toBeLessThanOrEqual(Date.now() + limits.watchdogMs);
  await events(await call(`/agent/session/${session}/events`), ({ type }) => type === 'agent_completed');
  await expect.poll(() => alarmOf(session)).toBeGreaterThan(Date.now() + limits.sessionExpiryMs - 60_000);
});

test('[J9] a session written by newer code answers 503, stays unchanged, and keeps its alarm until that code runs again', async () => {
  const session = await newSession();
  const path = `/agent/session/${session}`;
  await (await post(`${path}/message`, { content: 'hello', stream: false })).text();
  const addToSchema = (versions: number): Promise<void> =>
    runInDurableObject(SESSIONS.getByName(session), async (_object, { storage }) => {
      storage.sql.exec(`UPDATE schema SET version = version + ?`, versions);
      await storage.sync();
    });
  await addToSchema(999);
  await abortAllDurableObjects();
  for (const answer of [await call(path), await post(`${path}/message`, { content: 'hello' })]) {
    expect([answer.status, await answer.json()]).toMatchObject([503, { code: 'schema_too_new' }]);
  }
  expect(await runDurableObjectAlarm(SESSIONS.getByName(session))).toBe(true);
  expect((await alarmOf(session)) ?? 0).toBeLessThanOrEqual(Date.now() + limits.watchdogMs);
  await addToSchema(-999);
  await abortAllDurableObjects();
  expect(await (await call(path)).json()).toMatchObject({ session_id: session, runs: 1 });
});

test('[H5] sessions of a removed API key do no work, but still expire', async () => {
  const session = await newSessionId(here);
  const stub = SESSIONS.getByName(session);
  const record = { ...chatRecord(session), owner: 'gone' };
  await stub.create(record, {});
  const ask = (path: string, init: RequestInit = {}): Promise<Response> =>
    stub.fetch(new Request(`http://session${path}`, { ...init, headers: { [PRINCIPAL_HEADER]: 'gone' } }));
  const body = JSON.stringify({
    protocol_text: '<action type="tool" name="echo" id="a">{"delay_ms": 50000}</action>',
    stream: true,
  });
  const run = await ask('/-/execute', { method: 'POST', body });
  expect(await events(run, ({ type }) => type === 'action_started')).toContainEqual(
    expect.objectContaining({ type: 'action_started' }),
  );
  await abortAllDurableObjects();
  expect(await runDurableObjectAlarm(SESSIONS.getByName(session))).toBe(true);
  await expect.poll(() => alarmOf(session)).toBeGreaterThan(Date.now() + limits.sessionExpiryMs - 60_000);
});

/** Moves a session with messages back in time, to a new instance of its object. */
async function age(id: string, ms: number): Promise<void> {
  await runInDurableObject(SESSIONS.getByName(id), async (_object, { storage }) => {
    storage.sql.exec(
      `UPDATE session SET data = json_set(data, '$.created_at', json_extract(data, '$.created_at') - ?)`,
      ms,
    );
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
  expect(await alarmOf(id)).toBeNull();
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

const TURNS = 1_000;
const history = Array.from({ length: TURNS }, (_, at): SeededMessage[] => [
  { role: 'user', content: `question ${at}` },
  { role: 'assistant', content: `answer ${at}` },
]).flat();

test('[C1] 1,000 turns are durable with the session, survive an eviction, and are deleted with it', async () => {
  const id = await newSession('assistant', { history });
  const path = `/agent/session/${id}`;
  await abortAllDurableObjects();
  expect(await (await call(path)).json()).toMatchObject({ message_count: 2 * TURNS, runs: 0, last_seq: 0 });
  const answer = await post(`${path}/message`, { content: 'what is 2 + 2', stream: false });
  const { run_id: run } = await answer.json<{ run_id: string }>();
  const prompt = await (await call(`${path}/runs/${run}/prompt`)).text();
  expect(prompt).toContain('<response final=\\"true\\">answer 999</response>');
  expect(prompt).not.toContain(`question ${TURNS - limits.historyTurns - 1}"`);
  await abortAllDurableObjects();
  const page = await (await call(`${path}/history?limit=2`)).json<{ messages: unknown[]; next: string }>();
  expect(page.messages[0]).toEqual({ role: 'assistant', content: 'answer 999', seeded: true });
  expect(page.next).toBe('seeded_2000');
  const lines = (await (await call(`${path}/export`)).text()).split('\n');
  expect(lines.filter((line) => line.startsWith('{"seeded":'))).toHaveLength(2 * TURNS);
  expect((await call(path, { method: 'DELETE' })).status).toBe(204);
  await runInDurableObject(SESSIONS.getByName(id), (_object, { storage }) => {
    expect(storage.sql.exec(`SELECT name FROM sqlite_master WHERE name = 'seeded'`).toArray()).toEqual([]);
  });
  expect((await call(path)).status).toBe(404);
});

test('[C1] an object that fails while it writes the history has no session and no history, and its alarm leaves nothing', async () => {
  const id = `ses_${'e'.repeat(32)}`;
  const record = chatRecord(id);
  // An abort breaks the stubs that exist.
  const stub = (): ReturnType<typeof SESSIONS.getByName> => SESSIONS.getByName(id);
  // Directly, because the Worker knows that no session has this id.
  const read = (): Promise<Response> =>
    runInDurableObject(stub(), (object) => object.fetch(new Request('http://session/')));
  // Written last, in rows of its own.
  const long: SeededMessage = { role: 'user', content: 'x'.repeat(limits.rowBytes) };
  const failed = runInDurableObject(stub(), async (object, { storage }) => {
    const exec = storage.sql.exec.bind(storage.sql);
    const failing = (...given: Parameters<typeof exec>): ReturnType<typeof exec> => {
      if (given[0].startsWith('INSERT INTO chunks')) throw new Error('the disk fails');
      return exec(...given);
    };
    Object.defineProperty(storage, 'sql', { value: { exec: failing }, configurable: true });
    try {
      await object.create(record, { x: 1 }, { messages: [...history, long], files: new Map() });
    } finally {
      Reflect.deleteProperty(storage, 'sql');
    }
  });
  await expect(failed).rejects.toThrow('the disk fails');
  expect((await read()).status).toBe(404);
  await abortAllDurableObjects();
  // It was set before the session was written (C6). On a busy machine, it may have fired by itself.
  await runDurableObjectAlarm(stub());
  await runInDurableObject(stub(), async (object, { storage }) => {
    expect(await storage.getAlarm()).toBeNull();
    for (const name of ['seeded', 'variables'])
      expect(storage.sql.exec(`SELECT 1 FROM sqlite_master WHERE name = ?`, name).toArray()).toEqual([]);
    const rows = ['session', 'chunks'].map(
      (table) => storage.sql.exec(`SELECT COUNT(*) AS count FROM ${table}`).one()['count'],
    );
    expect(rows).toEqual([0, 0]);
    await object.create(record, {}, { messages: [long], files: new Map() });
  });
  await abortAllDurableObjects();
  expect(await (await read()).json()).toMatchObject({ message_count: 1 });
});
