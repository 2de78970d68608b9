/** Feeds that sessions share, with real objects (F6). */
import {
  abortAllDurableObjects,
  listDurableObjectIds,
  runDurableObjectAlarm,
  runInDurableObject,
} from 'cloudflare:test';
import { beforeEach, expect, test } from 'vitest';
import { loadManifests } from '../../src/catalog/load.ts';
import type { SharedFeedRequest, SharedFeedValue } from '../../src/domain/ports/shared-values.ts';
import { sharedFeeds } from '../../src/durable/shared-feeds.ts';
import { call, newSession, post } from './client.ts';
import { FEEDS, here, SESSIONS } from './bindings.ts';

/** Each call of the source counts, so the value says how often it was called. */
const COUNTER = `kind: Relic
version: "1.0"
name: counter
summary: Counts
implementation: { type: edge, store: kv }
scope: shared
`;
const WATCHER = `kind: Agent
version: "1.0"
name: watcher
summary: Watches a counter
persona: You watch.
import: { relics: [counter] }
context_feeds:
  - id: count
    type: periodic
    interval: 1h
    shared: true
    allow_unsafe: true
    source: { type: relic, name: counter, action: increment, params: { key: n } }
`;

const HOUR = 3_600_000;

beforeEach(async () => {
  for (const [ref, body] of [
    ['relic/counter', COUNTER],
    ['agent/watcher', WATCHER],
  ] as const) {
    expect((await call(`/manifests/${ref}`, { method: 'PUT', body })).status).toBeLessThan(300);
  }
});

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

test('[F6] 20 sessions are one fetch per interval, from prompts and from alarms', { timeout: 120_000 }, async () => {
  const sessions = await Promise.all(Array.from({ length: 20 }, () => newSession('watcher')));
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
  if (object === undefined) throw new Error('there is no shared feed');
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

test('[F6] a source that fails gives its error as a value', async () => {
  const { source } = request('dan');
  const failed = await read('dan', { source: { ...source, action: 'get', params: {} } });
  expect(failed).toEqual({ value: null, at: null, error: expect.stringContaining('key') as string });
});
