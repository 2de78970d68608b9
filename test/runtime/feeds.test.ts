/** Periodic feeds on the real alarm of a session's object, and feeds that sessions share (F3, F6). */
import {
  abortAllDurableObjects,
  listDurableObjectIds,
  runDurableObjectAlarm,
  runInDurableObject,
} from 'cloudflare:test';
import { expect, test } from 'vitest';
import { call, manifest, newSession, post, upload } from './client.ts';
import { alarmOf } from './objects.ts';
import { FEEDS, here, SESSIONS } from './bindings.ts';
import { loadManifests } from '../../src/catalog/load.ts';
import type { SharedFeedRequest, SharedFeedValue } from '../../src/domain/ports/shared-values.ts';
import { sharedFeeds } from '../../src/durable/shared-feeds.ts';

const CLOCK = manifest(
  'Agent',
  'clock_watcher',
  `persona: You watch.
context_feeds:
  - { id: slow, type: periodic, interval: 10m, source: { type: internal, name: system_clock } }
  - { id: fast, type: periodic, interval: 20s, source: { type: internal, name: system_clock } }`,
);

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
    storage.sql.exec(
      `UPDATE session SET data = json_set(data, '$.created_at', json_extract(data, '$.created_at') - ?)`,
      ms,
    );
    await storage.sync();
  });
  await abortAllDurableObjects();
}

test('[F3] the first alarm after an eviction refreshes the feeds that are due, and no others', async () => {
  await upload(CLOCK);
  const id = await newSession('clock_watcher');
  await (await post(`/agent/session/${id}/message`, { content: 'hello', stream: false })).text();
  await age(id, 60_000);
  const before = await updatedAt(id);
  await runDurableObjectAlarm(SESSIONS.getByName(id));
  await expect.poll(async () => (await updatedAt(id))['fast']).toBeGreaterThan(Number(before['fast']));
  expect((await updatedAt(id))['slow']).toBe(before['slow']);
  expect(Number(await alarmOf(id)) - Date.now()).toBeLessThanOrEqual(20_000);
});

/** Each call of the source counts, so the value says how often it was called. */
const COUNTER = manifest('Relic', 'counter', 'implementation: { type: edge, store: kv }\nscope: shared');
const WATCHER = manifest(
  'Agent',
  'watcher',
  `persona: You watch.
import: { relics: [counter] }
context_feeds:
  - id: count
    type: periodic
    interval: 1h
    shared: true
    allow_unsafe: true
    source: { type: relic, name: counter, action: increment, params: { key: n } }`,
);

const HOUR = 3_600_000;

interface FeedNow {
  readonly value: unknown;
  readonly updated_at: number;
  readonly error: string | null;
  readonly shared?: boolean;
}

async function feedOf(id: string): Promise<FeedNow> {
  const response = await call(`/agent/session/${id}/feeds`);
  const { feeds } = await response.json<{ feeds: FeedNow[] }>();
  const [feed] = feeds;
  if (feed === undefined) throw new Error(`the session ${id} has no feed`);
  return feed;
}

test('[F6] several sessions are one fetch per interval, from prompts and from alarms', async () => {
  await upload(COUNTER, WATCHER);
  const sessions = await Promise.all(Array.from({ length: 4 }, () => newSession('watcher')));
  await Promise.all(
    sessions.map(async (id) => {
      await (await post(`/agent/session/${id}/message`, { content: 'hello', stream: false })).text();
    }),
  );
  const feeds = await Promise.all(sessions.map(feedOf));
  expect(feeds.map(({ value, error, shared }) => ({ value, error, shared }))).toEqual(
    feeds.map(() => ({ value: 1, error: null, shared: true })),
  );
  expect(new Set(feeds.map(({ updated_at: at }) => at)).size).toBe(1);
  const objects = await listDurableObjectIds(FEEDS);
  expect(objects).toHaveLength(1);

  // An hour later, for the shared value and for the sessions.
  for (const object of objects) {
    await runInDurableObject(FEEDS.get(object), (_object, { storage }) => {
      const { triedAt, ...stored } = storage.kv.get<{ triedAt: number }>('feed') ?? { triedAt: 0 };
      storage.kv.put('feed', { ...stored, triedAt: triedAt - HOUR });
    });
  }
  for (const id of sessions) {
    await runInDurableObject(SESSIONS.getByName(id), (_object, { storage }) => {
      storage.sql.exec(`UPDATE feeds SET data = json_set(data, '$.at', json_extract(data, '$.at') - ?)`, HOUR);
    });
  }
  await abortAllDurableObjects();
  await Promise.all(sessions.map((id) => runDurableObjectAlarm(SESSIONS.getByName(id))));
  await expect
    .poll(async () => (await Promise.all(sessions.map(feedOf))).map(({ value }) => value))
    .toEqual(sessions.map(() => 2));
});

/** A request for the counter of a namespace. */
function request(owner: string | null, more: Partial<SharedFeedRequest> = {}): SharedFeedRequest {
  const relic = loadManifests([{ path: 'counter.yaml', text: COUNTER }]).catalog.relic('counter');
  return {
    owner,
    source: { type: 'relic', name: 'counter', action: 'increment', params: { key: 'm' } },
    tool: null,
    relic,
    maxChars: 4_000,
    maxAgeMs: HOUR,
    waitMs: 1_000,
    ...more,
  };
}
const read = (owner: string | null, more: Partial<SharedFeedRequest> = {}): Promise<SharedFeedValue> =>
  sharedFeeds(here).read(request(owner, more));

test('[F6] another namespace, parameter, version or size is another value', async () => {
  expect(await read('ann')).toMatchObject({ value: 1, error: null });
  expect((await read('ann', { maxChars: 8_000 })).value).toBe(2);
  expect((await read('ann')).value).toBe(1);
  expect((await read('ben')).value).toBe(1);
  expect((await read(null)).value).toBe(1);
  const { relic, source } = request('ann');
  expect((await read('ann', { relic: relic === null ? null : { ...relic, version: '9.9' } })).value).toBe(3);
  expect((await read('ann', { source: { ...source, params: { key: 'm', by: 10 } } })).value).toBe(13);
  expect((await read('ann')).value).toBe(1);
  expect((await read('ben')).value).toBe(1);
});

test('[F6] only the value is stored, and the alarm deletes it', async () => {
  await read('cat');
  const [object] = await listDurableObjectIds(FEEDS);
  if (object === undefined) throw new Error('the shared feed is missing');
  const target = FEEDS.get(object);
  const stored = (): Promise<Record<string, unknown>> =>
    runInDurableObject(target, (_object, { storage }) => Object.fromEntries(storage.kv.list()));
  const { feed, ...rest } = await stored();
  expect(rest).toEqual({});
  expect(Object.keys(feed as object).toSorted()).toEqual(['at', 'error', 'triedAt', 'value']);
  const armed = await runInDurableObject(target, (_object, { storage }) => storage.getAlarm());
  expect(Number(armed) - Date.now()).toBeGreaterThan(HOUR);
  await runDurableObjectAlarm(target);
  expect(await stored()).toEqual({});
});
