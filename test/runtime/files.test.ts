/** Large files of messages in R2 (C2): as stored by the platform's own simulator. */
import { abortAllDurableObjects, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { DeletedFiles } from '../../src/durable/deleted-files.ts';
import { objectStoreOf } from '../../src/durable/object-store.ts';
import { platformClock } from '../../src/durable/platform.ts';
import { sessionIdOf } from '../../src/durable/session-ids.ts';
import { FILES, here, SESSIONS } from './bindings.ts';
import { chatRecord, call, newSession, post } from './client.ts';
import { storedKey } from './stored-key.ts';

/** All buckets of the isolate, also those of objects. */
const R2 = Object.getPrototypeOf(FILES) as R2Bucket;

afterEach(() => {
  vi.restoreAllMocks();
});

function bytesOf(seed: number, size: number = limits.objectFileLeastBytes): Uint8Array {
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

const alarmOf = (id: string): Promise<number | null> =>
  runInDurableObject(SESSIONS.getByName(id), (_object, { storage }) => storage.getAlarm());

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

  test('a failed put is 503, and nothing of the message is stored; then the same message is accepted', async () => {
    const id = await newSession();
    const bytes = bytesOf(4);
    const put = vi.spyOn(R2, 'put').mockRejectedValue(new Error('away'));
    const refused = await send(id, bytes);
    expect([refused.status, await refused.json()]).toMatchObject([503, { code: 'storage_unavailable' }]);
    expect(refused.headers.get('retry-after')).toBe('1');
    expect(put).toHaveBeenCalledTimes(limits.objectAttempts);
    const { runs } = await (await call(`/agent/session/${id}/runs`)).json<{ runs: unknown[] }>();
    expect(runs).toEqual([]);
    expect(await filesOf(id)).toMatchObject([{ place: 'object', state: 'pending' }]);
    expect(Number(await alarmOf(id))).toBeLessThanOrEqual(Date.now() + limits.unreferredFileMs);
    put.mockRestore();
    await sent(id, bytes);
    expect(await filesOf(id)).toMatchObject([{ place: 'object', state: 'stored' }]);
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

  test('an expired session too', async () => {
    const id = await newSession();
    await sent(id, bytesOf(8));
    await runInDurableObject(SESSIONS.getByName(id), async (_object, { storage }) => {
      storage.sql.exec(`UPDATE session SET data = json_set(data, '$.created_at', 0)`);
      storage.sql.exec(`UPDATE runs SET started_at = 0, ended_at = 0`);
      await storage.sync();
    });
    await abortAllDurableObjects();
    await runDurableObjectAlarm(SESSIONS.getByName(id));
    await expect.poll(() => keysOf(id)).toEqual([]);
    await expect.poll(() => alarmOf(id)).toBeNull();
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
