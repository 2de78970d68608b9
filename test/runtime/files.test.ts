/** Large files of messages and workspaces in R2 (C2, C7): as stored by the platform's own simulator. */
import { abortAllDurableObjects, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { DeletedFiles } from '../../src/durable/deleted-files.ts';
import { objectStoreOf } from '../../src/durable/object-store.ts';
import { platformClock } from '../../src/durable/platform.ts';
import { sessionIdOf } from '../../src/durable/session-ids.ts';
import { FILES, here, SESSIONS } from './bindings.ts';
import { alarmOf, storedKey } from './objects.ts';
import { call, chatRecord, newSession, post } from './client.ts';

/** All buckets of the isolate, also those of objects. */
const R2 = Object.getPrototypeOf(FILES) as R2Bucket;

afterEach(() => {
  vi.restoreAllMocks();
});

function bytesOf(seed: number, size: number = limits.objectFileLeastBytes): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length: size }, (_, at) => (at * 7 + seed) % 251);
}

const part = (bytes: Uint8Array, name = 'a.bin'): object => ({ type: 'file', name, data: base64(bytes) });

function base64(bytes: Uint8Array): string {
  return (bytes as Uint8Array & { toBase64(): string }).toBase64();
}

async function send(id: string, ...files: Uint8Array[]): Promise<Response> {
  return await post(`/agent/session/${id}/message`, { content: files.map((bytes) => part(bytes)), stream: false });
}

async function sent(id: string, ...files: Uint8Array[]): Promise<void> {
  const response = await send(id, ...files);
  expect([response.status, await response.json()]).toMatchObject([200, { status: 'completed' }]);
}

const hashOf = async (bytes: Uint8Array): Promise<string> =>
  new Uint8Array(await crypto.subtle.digest('SHA-256', bytes as Uint8Array<ArrayBuffer>)).reduce(
    (text, byte) => text + byte.toString(16).padStart(2, '0'),
    '',
  );

const keysOf = async (id: string): Promise<string[]> => {
  const { objects } = await FILES.list({ prefix: `sessions/${id}/` });
  return objects.map(({ key }) => key);
};

/** The files in the session's database. */
async function filesOf(id: string): Promise<unknown[]> {
  return await runInDurableObject(SESSIONS.getByName(id), (_object, { storage }) =>
    storage.sql.exec(`SELECT sha256, place, state FROM message_files ORDER BY id`).toArray(),
  );
}

const tablesOf = (id: string): Promise<number> =>
  runInDurableObject(
    SESSIONS.getByName(id),
    (_object, { storage }) =>
      storage.sql.exec(`SELECT name FROM sqlite_master WHERE name IN ('runs', 'session', 'message_files')`).toArray()
        .length,
  );

/** What waits to be deleted becomes due, in a new instance of the object. */
async function dueNow(id: string): Promise<void> {
  await runInDurableObject(SESSIONS.getByName(id), async (_object, { storage }) => {
    for (const [key, entry] of storage.kv.list<object>({ prefix: 'deletedFiles:' }))
      storage.kv.put(key, { ...entry, dueAt: 0, until: 0 });
    await storage.sync();
  });
  await abortAllDurableObjects();
}

describe('C2: files of messages in R2', () => {
  test('large files are objects under the incarnation, once; downloads give the same bytes', async () => {
    const id = await newSession();
    const [large, small] = [bytesOf(1, 2 * limits.rowBytes + 3), bytesOf(2, 10)];
    await sent(id, large, small);
    await sent(id, large);
    const sha256 = await hashOf(large);
    const incarnation = (await storedKey(id)).slice(id.length + 1);
    expect(incarnation).toMatch(/^[0-9a-f]{12}$/);
    expect(await keysOf(id)).toEqual([`sessions/${id}/${incarnation}/${sha256}`]);
    expect(await filesOf(id)).toEqual([
      { sha256, place: 'object', state: 'stored' },
      { sha256: await hashOf(small), place: 'rows', state: 'stored' },
    ]);
    await abortAllDurableObjects();
    for (const bytes of [large, small]) {
      const response = await call(`/agent/session/${id}/content/${await hashOf(bytes)}`);
      expect(response.headers.get('etag')).toBe(`"${await hashOf(bytes)}"`);
      expect(await hashOf(await response.bytes())).toBe(await hashOf(bytes));
    }
    expect((await call(`/agent/session/${id}/content/${'0'.repeat(64)}`)).status).toBe(404);
  });

  test('R2 refuses bytes with another hash, and lists pages of a prefix', async () => {
    const store = objectStoreOf(here);
    const bytes = bytesOf(3, 10);
    await expect(store?.put('other/a', bytes, '0'.repeat(64))).rejects.toThrow();
    for (const key of ['other/a', 'other/b', 'othe']) await store?.put(key, bytes, await hashOf(bytes));
    expect(await store?.get('other/a')).toEqual(bytes);
    expect(await store?.deleteSome('other/')).toBe(true);
    expect([await store?.get('other/a'), await store?.get('othe')]).toEqual([null, bytes]);
    await store?.delete('othe');
    await store?.delete('othe');
    expect(await store?.get('othe')).toBeNull();
    expect(objectStoreOf({})).toBeNull();
  });

  test('a crash between the object and the run leaves an object that the alarm deletes', async () => {
    const id = await newSession();
    const original = R2.put;
    vi.spyOn(R2, 'put').mockImplementation(async function (this: R2Bucket, ...given: unknown[]) {
      await Reflect.apply(original, this, given);
      return await new Promise<never>(() => undefined);
    });
    const answer = send(id, bytesOf(5)).catch(() => null);
    await expect.poll(() => keysOf(id)).toHaveLength(1);
    await abortAllDurableObjects();
    await answer;
    vi.restoreAllMocks();
    await runInDurableObject(SESSIONS.getByName(id), async (_object, { storage }) => {
      storage.sql.exec(`UPDATE message_files SET at = at - ?`, limits.unreferredFileMs);
      await storage.sync();
    });
    await abortAllDurableObjects();
    await runDurableObjectAlarm(SESSIONS.getByName(id));
    await expect.poll(() => keysOf(id)).toEqual([]);
    await expect.poll(() => filesOf(id)).toEqual([]);
    await sent(id, bytesOf(5));
    expect(await keysOf(id)).toHaveLength(1);
  });
});

describe('C2: deletion of a session with objects', () => {
  test('deletes them, and everything else', async () => {
    const id = await newSession();
    await sent(id, bytesOf(6), bytesOf(7));
    expect(await keysOf(id)).toHaveLength(2);
    expect((await call(`/agent/session/${id}`, { method: 'DELETE' })).status).toBe(204);
    expect(await keysOf(id)).toEqual([]);
    expect([await tablesOf(id), await alarmOf(id)]).toEqual([0, null]);
    expect((await call(`/agent/session/${id}`)).status).toBe(404);
  });

  test('while R2 fails: the session is gone at once, its objects later', async () => {
    const id = await newSession();
    await sent(id, bytesOf(9));
    vi.spyOn(R2, 'list').mockRejectedValue(new Error('away'));
    expect((await call(`/agent/session/${id}`, { method: 'DELETE' })).status).toBe(204);
    expect((await call(`/agent/session/${id}`)).status).toBe(404);
    expect(await tablesOf(id)).toBe(0);
    expect(await keysOf(id).catch(() => 'away')).toBe('away');
    expect(Number(await alarmOf(id))).toBeGreaterThan(Date.now());
    vi.restoreAllMocks();
    // Not due yet.
    await runDurableObjectAlarm(SESSIONS.getByName(id));
    expect(await keysOf(id)).toHaveLength(1);
    await dueNow(id);
    await runDurableObjectAlarm(SESSIONS.getByName(id));
    await expect.poll(() => keysOf(id)).toEqual([]);
    await expect.poll(() => alarmOf(id)).toBeNull();
  });

  test('interrupted by the end of its host: the next one deletes the objects', async () => {
    const id = await newSession();
    await sent(id, bytesOf(13));
    const list = vi.spyOn(R2, 'list').mockImplementation(() => new Promise<never>(() => undefined));
    const answer = call(`/agent/session/${id}`, { method: 'DELETE' }).catch(() => null);
    await expect.poll(() => list.mock.calls.length).toBeGreaterThan(0);
    await abortAllDurableObjects();
    await answer;
    vi.restoreAllMocks();
    expect((await call(`/agent/session/${id}`)).status).toBe(404);
    expect(await keysOf(id)).toHaveLength(1);
    expect(await runDurableObjectAlarm(SESSIONS.getByName(id))).toBe(true);
    await expect.poll(() => keysOf(id)).toEqual([]);
    await expect.poll(() => alarmOf(id)).toBeNull();
  });

  test('with objects that may still be put: they are deleted again later', async () => {
    const id = await newSession();
    await sent(id, bytesOf(10));
    vi.spyOn(R2, 'put').mockRejectedValue(new Error('away'));
    expect((await send(id, bytesOf(11))).status).toBe(503);
    vi.restoreAllMocks();
    const [key = ''] = await keysOf(id);
    await call(`/agent/session/${id}`, { method: 'DELETE' });
    expect(await keysOf(id)).toEqual([]);
    await FILES.put(key, 'late');
    expect(Number(await alarmOf(id))).toBeGreaterThan(Date.now() + limits.unreferredFileMs - 60_000);
    await dueNow(id);
    await runDurableObjectAlarm(SESSIONS.getByName(id));
    await expect.poll(() => keysOf(id)).toEqual([]);
    await expect.poll(() => alarmOf(id)).toBeNull();
  });

  test('a session that is made again under the same id neither sees nor loses objects', async () => {
    const id = await sessionIdOf(here, 'a session with files');
    const record = chatRecord(id);
    await SESSIONS.getByName(id).create(record, {});
    await sent(id, bytesOf(12));
    const sha256 = await hashOf(bytesOf(12));
    vi.spyOn(R2, 'list').mockRejectedValue(new Error('away'));
    await call(`/agent/session/${id}`, { method: 'DELETE' });
    vi.restoreAllMocks();
    await SESSIONS.getByName(id).create(record, {});
    expect((await call(`/agent/session/${id}/content/${sha256}`)).status).toBe(404);
    await sent(id, bytesOf(12));
    const [first, second] = (await keysOf(id)).toSorted();
    expect([first === second, (await keysOf(id)).length]).toEqual([false, 2]);
    await dueNow(id);
    await runDurableObjectAlarm(SESSIONS.getByName(id));
    await expect.poll(async () => (await keysOf(id)).length).toBe(1);
    expect(await hashOf(await (await call(`/agent/session/${id}/content/${sha256}`)).bytes())).toBe(sha256);
    expect(await tablesOf(id)).toBe(3);
    expect(Number(await alarmOf(id))).toBeGreaterThan(Date.now() + limits.sessionExpiryMs - 60_000);
    await call(`/agent/session/${id}`, { method: 'DELETE' });
    expect(await keysOf(id)).toEqual([]);
  });

  test('the objects of many deleted sessions of one id: those that fail do not hold up the others', async () => {
    const id = await newSession();
    await runInDurableObject(SESSIONS.getByName(id), async (_object, { storage }) => {
      const store = objectStoreOf(here);
      if (store === null) throw new Error('no bucket');
      const failing = {
        ...store,
        deleteSome: (prefix: string) =>
          prefix === 'first/' ? Promise.reject(new Error('away')) : store.deleteSome(prefix),
      };
      const deleted = new DeletedFiles(storage, failing, platformClock);
      deleted.replaceSession({ prefix: 'first/', isPending: false }, []);
      deleted.replaceSession({ prefix: 'second/', isPending: false }, []);
      deleted.replaceSession(null, []);
      await FILES.put('second/a', 'a');
      expect(await deleted.collect()).toMatchObject({ code: 'storage_unavailable' });
      expect(await FILES.head('second/a')).toBeNull();
      const next = new DeletedFiles(storage, null, platformClock);
      const [first, second] = [Number(next.dueAt), limits.objectRetryMs];
      expect(first).toBeGreaterThan(Date.now() + second - 10_000);
      expect(next.isEmpty).toBe(false);
      // Without a binding, nothing can be deleted.
      storage.kv.put('deletedFiles:first/', { until: 0, dueAt: 0, failures: 3 });
      const unbound = new DeletedFiles(storage, null, platformClock);
      expect(String(await unbound.collect())).toContain('FILES');
      expect(Number(unbound.dueAt)).toBeGreaterThan(Date.now() + 7 * limits.objectRetryMs);
    });
  });
});

const pathOf = (session: string, path = ''): string => `/agent/session/${session}/files${path}`;

async function put(session: string, path: string, body: Uint8Array<ArrayBuffer>): Promise<string> {
  const response = await call(pathOf(session, path), { method: 'PUT', body });
  expect([200, 201]).toContain(response.status);
  return (await response.json<{ sha256: string }>()).sha256;
}

const read = async (session: string, path: string): Promise<Uint8Array> =>
  await (await call(pathOf(session, path))).bytes();

const objectsOf = async (session: string): Promise<string[]> => {
  const { objects } = await FILES.list({ prefix: `sessions/${session}/` });
  return objects.map(({ key }) => key.slice(key.lastIndexOf('/') + 1)).toSorted();
};

/** Released bytes become due, in a new instance of the object. */
async function collected(session: string): Promise<void> {
  await runInDurableObject(SESSIONS.getByName(session), async (_object, { storage }) => {
    storage.sql.exec(`UPDATE message_files SET at = 0 WHERE state <> 'stored'`);
    await storage.sync();
  });
  await abortAllDurableObjects();
  await runDurableObjectAlarm(SESSIONS.getByName(session));
}

test('[C7] a deleted session leaves no object, and a fork has its own', async () => {
  const session = await newSession();
  await post(`/agent/session/${session}/message`, { content: 'hello', stream: false });
  const sha256 = await put(session, '/a.bin', bytesOf(5));
  await put(session, '/b/small.txt', bytesOf(6, 10));
  const answer = await post(`/agent/session/${session}/fork`, {});
  const { session_id: fork } = await answer.json<{ session_id: string }>();
  expect([await objectsOf(session), await objectsOf(fork)]).toEqual([[sha256], [sha256]]);
  await call(`/agent/session/${session}`, { method: 'DELETE' });
  expect(await objectsOf(session)).toEqual([]);
  expect(await read(fork, '/a.bin')).toEqual(bytesOf(5));
  expect(await read(fork, '/b/small.txt')).toEqual(bytesOf(6, 10));
  await call(pathOf(fork, '/a.bin'), { method: 'DELETE' });
  await collected(fork);
  expect(await objectsOf(fork)).toEqual([]);
});

test('[C7] an export has the files of the workspace', async () => {
  const session = await newSession();
  await put(session, '/data/ä b.txt', bytesOf(7, 5));
  const text = await (await call(`/agent/session/${session}/export`)).text();
  const lines = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(lines.flatMap(({ workspace }) => workspace ?? [])).toEqual([
    {
      path: 'data/ä b.txt',
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
      size: 5,
      executable: false,
      modified_at: expect.any(Number) as number,
      download: `/agent/session/${session}/files/data/%C3%A4%20b.txt`,
      base64: (bytesOf(7, 5) as Uint8Array & { toBase64(): string }).toBase64(),
    },
  ]);
});

test('[C2] objects of a deleted session whose entry cannot be written stay due', async () => {
  await runInDurableObject(SESSIONS.getByName('written-together'), async (_object, { storage }) => {
    const store = objectStoreOf(here);
    if (store === null) throw new Error('no bucket');
    const away = { ...store, deleteSome: () => Promise.reject(new Error('away')) };
    const deleted = new DeletedFiles(storage, away, platformClock);
    deleted.replaceSession({ prefix: 'first/', isPending: false }, []);
    const before = deleted.dueAt;
    const { kv } = storage;
    const full = vi.spyOn(Object.getPrototypeOf(kv) as typeof kv, 'put').mockImplementation(() => {
      throw new Error('the disk is full');
    });
    expect(String(await deleted.collect())).toContain('full');
    full.mockRestore();
    expect(deleted.dueAt).toBe(before);
    expect(new DeletedFiles(storage, null, platformClock).dueAt).toBe(before);
    deleted.replaceSession(null, []);
  });
});
