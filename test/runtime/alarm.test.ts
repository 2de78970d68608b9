/** The alarm of a session's object: the time that it is set for, and its effects (J2, H1). */
import { abortAllDurableObjects, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { newSessionId } from '../../src/durable/session-ids.ts';
import { PRINCIPAL_HEADER } from '../../src/http/session-env.ts';
import { SCHEMA_VERSION } from '../../src/journal/schema.ts';
import { chatRecord, call, events, newSession, post } from './client.ts';
import { here, SESSIONS } from './bindings.ts';

const alarmOf = (session: string): Promise<number | null> =>
  runInDurableObject(SESSIONS.getByName(session), (_object, { storage }) => storage.getAlarm());

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

test('[H1] an idle session is deleted after thirty days with all its data', async () => {
  const session = await newSession();
  await runInDurableObject(SESSIONS.getByName(session), (_object, { storage }) => {
    storage.sql.exec(`UPDATE session SET data = json_set(data, '$.created_at', 0)`);
  });
  await abortAllDurableObjects();
  expect(await runDurableObjectAlarm(SESSIONS.getByName(session))).toBe(true);
  await expect.poll(async () => (await call(`/agent/session/${session}`)).status).toBe(404);
  const tables = await runInDurableObject(SESSIONS.getByName(session), (_object, { storage }) =>
    storage.sql.exec(`SELECT name FROM sqlite_master WHERE name = 'events'`).toArray(),
  );
  expect(tables).toEqual([]);
  expect(await alarmOf(session)).toBeNull();
});

test('[J9] a session written by newer code answers 503, stays unchanged, and keeps its alarm until that code runs again', async () => {
  const session = await newSession();
  const path = `/agent/session/${session}`;
  await (await post(`${path}/message`, { content: 'hello', stream: false })).text();
  const schema = (version: number): Promise<void> =>
    runInDurableObject(SESSIONS.getByName(session), async (_object, { storage }) => {
      storage.sql.exec(`UPDATE schema_version SET version = ?`, version);
      await storage.sync();
    });
  await schema(999);
  await abortAllDurableObjects();
  for (const answer of [await call(path), await post(`${path}/message`, { content: 'hello' })]) {
    expect([answer.status, await answer.json()]).toMatchObject([503, { code: 'schema_too_new' }]);
  }
  expect(await runDurableObjectAlarm(SESSIONS.getByName(session))).toBe(true);
  expect((await alarmOf(session)) ?? 0).toBeLessThanOrEqual(Date.now() + limits.watchdogMs);
  await schema(SCHEMA_VERSION);
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
