/** Periodic feeds on the real alarm of a session's object (F3). */
import { abortAllDurableObjects, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { call, newSession, post } from './client.ts';
import { SESSIONS } from './bindings.ts';

const WATCHER = `kind: Agent
version: "1.0"
name: watcher
summary: Watches the clock
persona: You watch.
context_feeds:
  - { id: slow, type: periodic, interval: 10m, source: { type: internal, name: system_clock } }
  - { id: fast, type: periodic, interval: 20s, source: { type: internal, name: system_clock } }
`;

/** A session of the watcher that has answered one message. */
async function watched(): Promise<string> {
  await call('/manifests/agent/watcher', { method: 'PUT', body: WATCHER });
  const id = await newSession('watcher');
  await (await post(`/agent/session/${id}/message`, { content: 'hello', stream: false })).text();
  return id;
}

async function updatedAt(id: string): Promise<Record<string, number>> {
  const response = await call(`/agent/session/${id}/feeds`);
  const { feeds } = await response.json<{ feeds: { id: string; updated_at: number }[] }>();
  return Object.fromEntries(feeds.map(({ id: feed, updated_at: at }) => [feed, at]));
}

/** Simulates a session that has been idle for that time, and whose host is gone. */
async function age(id: string, ms: number): Promise<void> {
  await runInDurableObject(SESSIONS.getByName(id), async (_object, { storage }) => {
    storage.sql.exec(`UPDATE feeds SET data = json_set(data, '$.at', json_extract(data, '$.at') - ?)`, ms);
    storage.sql.exec(`UPDATE runs SET started_at = started_at - ?1, ended_at = ended_at - ?1`, ms);
    const { data } = storage.sql.exec<{ data: string }>(`SELECT data FROM session`).one();
    const record = JSON.parse(data) as { created_at: number };
    storage.sql.exec(`UPDATE session SET data = ?`, JSON.stringify({ ...record, created_at: record.created_at - ms }));
    await storage.sync();
  });
  await abortAllDurableObjects();
}

test('[F3] the first alarm after an eviction refreshes the feeds that are due, and no others', async () => {
  const id = await watched();
  await age(id, 60_000);
  const before = await updatedAt(id);
  await runDurableObjectAlarm(SESSIONS.getByName(id));
  await expect.poll(async () => (await updatedAt(id))['fast']).toBeGreaterThan(Number(before['fast']));
  expect((await updatedAt(id))['slow']).toBe(before['slow']);
  const armed = await runInDurableObject(SESSIONS.getByName(id), (_object, { storage }) => storage.getAlarm());
  expect(Number(armed) - Date.now()).toBeLessThanOrEqual(20_000);
});

test('[F3] no feed is refreshed while the session is idle; the next message restarts the refreshes', async () => {
  const id = await watched();
  await age(id, limits.feedIdleMs + 1);
  const before = await updatedAt(id);
  const alarm = (): Promise<number | null> =>
    runInDurableObject(SESSIONS.getByName(id), (_object, { storage }) => storage.getAlarm());
  await runDurableObjectAlarm(SESSIONS.getByName(id));
  await expect.poll(async () => Number(await alarm()) - Date.now()).toBeGreaterThan(limits.feedIdleMs);
  expect(await updatedAt(id)).toEqual(before);
  await (await post(`/agent/session/${id}/message`, { content: 'hello again', stream: false })).text();
  expect((await updatedAt(id))['fast']).toBeGreaterThan(Number(before['fast']));
  await expect.poll(async () => Number(await alarm()) - Date.now()).toBeLessThanOrEqual(limits.watchdogMs);
});

test('[P12] posted text reads the feeds that it refers to, and those that it adds', async () => {
  await call('/manifests/agent/watcher', { method: 'PUT', body: WATCHER });
  const add = {
    name: 'add_context_feed',
    parameters: { id: 'about', source: { type: 'internal', name: 'agent_metadata' } },
  };
  const response = await post('/execute/direct', {
    agent: 'watcher',
    stream: false,
    protocol_text: `<action type="internal" id="add">${JSON.stringify(add)}</action><response final="true">$fast $about.name</response>`,
  });
  const result = await response.json<{ status: string; response: string; warnings: unknown[] }>();
  expect(result).toMatchObject({ status: 'completed', warnings: [] });
  expect(result.response).toMatch(/^\d{4}-\d\d-\d\dT[\d:]+\+00:00 watcher$/);
});

test('[F3] an execution whose run has ended sets no alarm for its feeds', async () => {
  await call('/manifests/agent/watcher', { method: 'PUT', body: WATCHER });
  const response = await post('/execute/direct', {
    agent: 'watcher',
    protocol_text: '<response final="true">ok</response>',
    stream: false,
  });
  const { session_id: id } = await response.json<{ session_id: string }>();
  const alarm = (): Promise<number | null> =>
    runInDurableObject(SESSIONS.getByName(id), (_object, { storage }) => storage.getAlarm());
  await expect.poll(async () => Number(await alarm()) - Date.now()).toBeGreaterThan(limits.feedIdleMs);
});
