/** The lists of sessions and executions in workerd: real sessions, and shards that are away (C6, Z2). */
import { abortAllDurableObjects, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { shardOf } from '../../src/domain/directory.ts';
import type { DirectoryEntry } from '../../src/domain/directory.ts';
import { limits } from '../../src/domain/limits.ts';
import { DirectoryObject } from '../../src/durable/objects/directory-object.ts';
import { platformClock } from '../../src/durable/platform.ts';
import { QuarantineSlots } from '../../src/engine/replay/quarantine-slots.ts';
import { SESSIONS } from './bindings.ts';
import { call, execute, newSession, post } from './client.ts';
import type { ExecutionEntry } from '../../src/domain/execution.ts';

interface Page {
  readonly sessions: readonly DirectoryEntry[];
  readonly next: string | null;
}

const read = async (search = ''): Promise<Page> => await (await call(`/sessions${search}`)).json<Page>();
const find = async (id: string, search = ''): Promise<DirectoryEntry | null> =>
  (await read(search)).sessions.find(({ session_id: session }) => session === id) ?? null;
const say = async (id: string, content: string): Promise<void> =>
  void (await (await post(`/agent/session/${id}/message`, { content, stream: false })).text());
const remove = async (id: string): Promise<number> => (await call(`/agent/session/${id}`, { method: 'DELETE' })).status;
/** Everything in the object's storage, and its alarm. */
const leftIn = (id: string): Promise<unknown> =>
  runInDurableObject(SESSIONS.getByName(id), async (_object, { storage }) => [
    [...(await storage.list()).keys()],
    storage.sql.exec(`SELECT name FROM sqlite_master WHERE name NOT LIKE '\\_cf\\_%' ESCAPE '\\'`).toArray(),
    await storage.getAlarm(),
  ]);
const later = (ms: number): void => {
  const { now } = platformClock;
  vi.spyOn(platformClock, 'now').mockImplementation(() => now() + ms);
};
const away = (method: 'write' | 'forget'): { readonly calls: () => number } => {
  const spied = vi.spyOn(DirectoryObject.prototype, method).mockImplementation(() => {
    throw new Error('the shard is away');
  });
  return { calls: () => spied.mock.calls.length };
};

beforeEach(() => void vi.spyOn(QuarantineSlots.prototype, 'delayOf').mockReturnValue(0));
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

describe('C6: GET /sessions', () => {
  test('lists a session from its creation on, with its title, its status and its activity', async () => {
    const id = await newSession('assistant', { user_id: 'ann' });
    await expect
      .poll(() => find(id))
      .toMatchObject({ agent: 'assistant', user_id: 'ann', title: null, status: 'idle' });
    await say(id, '  What is\n6 times 7?');
    const { updated_at, created_at } = await (await call(`/agent/session/${id}`)).json<DirectoryEntry>();
    await expect
      .poll(() => find(id))
      .toEqual({
        session_id: id,
        agent: 'assistant',
        user_id: 'ann',
        title: 'What is',
        status: 'idle',
        created_at,
        updated_at,
        // The demo model costs nothing.
        cost: 0,
      });
    expect(await find(id, '?user_id=ann&agent=assistant&status=idle')).not.toBeNull();
    for (const other of ['user_id=bob', 'agent=writer', 'status=waiting'])
      expect(await find(id, `?${other}`)).toBeNull();
  });

  test('a deleted session disappears, and nothing of it is left in its object', async () => {
    const id = await newSession();
    await expect.poll(() => find(id)).not.toBeNull();
    expect(await remove(id)).toBe(204);
    await expect.poll(() => find(id)).toBeNull();
    await expect.poll(() => leftIn(id)).toEqual([[], [], null]);
  });
});

describe('C6: a shard that is away', () => {
  test('neither delays nor fails anything of the session; it is listed when the alarm fires', async () => {
    const shard = away('write');
    const id = await newSession();
    await say(id, 'Are you there?');
    await expect.poll(() => shard.calls()).toBeGreaterThan(0);
    expect(await find(id)).toBeNull();
    vi.restoreAllMocks();
    await abortAllDurableObjects();
    later(3_600_000);
    expect(await runDurableObjectAlarm(SESSIONS.getByName(id))).toBe(true);
    await expect.poll(() => find(id)).toMatchObject({ title: 'Are you there?' });
  });

  test('does not delay a deletion; the session is forgotten when the alarm fires, then its object is empty', async () => {
    const id = await newSession();
    await expect.poll(() => find(id)).not.toBeNull();
    const shard = away('forget');
    expect(await remove(id)).toBe(204);
    expect((await call(`/agent/session/${id}`)).status).toBe(404);
    await expect.poll(() => shard.calls()).toBeGreaterThan(0);
    expect(await find(id)).not.toBeNull();
    vi.restoreAllMocks();
    await abortAllDurableObjects();
    later(3_600_000);
    expect(await runDurableObjectAlarm(SESSIONS.getByName(id))).toBe(true);
    await expect.poll(() => find(id)).toBeNull();
    await expect.poll(() => leftIn(id)).toEqual([[], [], null]);
  });

  test('fails the list with 503 instead of leaving sessions out', async () => {
    const list = vi.spyOn(DirectoryObject.prototype, 'list');
    list.mockImplementationOnce(() => {
      throw new Error('the shard is away');
    });
    const answer = await call('/sessions');
    expect([answer.status, await answer.json()]).toMatchObject([503, { code: 'directory_unavailable' }]);
  });

  test('[Z2] a session that has answered leaves the key-value storage without a table: a key would cost it 30 KiB', async () => {
    const id = await newSession();
    await say(id, 'hello');
    await expect.poll(() => find(id)).toMatchObject({ title: 'hello' });
    const tables = await runInDurableObject(SESSIONS.getByName(id), (_object, { storage }) =>
      storage.sql.exec(`SELECT name FROM sqlite_master WHERE name = '_cf_KV'`).toArray(),
    );
    expect(tables).toEqual([]);
  });
});

test('C6: a shard that hangs fails the list after its time limit', async () => {
  const list = vi.spyOn(DirectoryObject.prototype, 'list');
  const hang = Promise.withResolvers<never>();
  const timers = vi.spyOn(platformClock, 'schedule');
  // The time limit of the hanging request passes at once.
  timers.mockImplementation((ms, callback) => {
    const timer = setTimeout(callback, ms === limits.directoryTimeoutMs ? 0 : ms);
    return () => clearTimeout(timer);
  });
  list.mockImplementation(() => hang.promise as never);
  const answer = await call('/sessions');
  expect([answer.status, await answer.json()]).toMatchObject([503, { code: 'directory_unavailable' }]);
  expect(timers.mock.calls.filter(([ms]) => ms === limits.directoryTimeoutMs)).toHaveLength(limits.directoryShards);
});

/** All executions, in pages of three. */
async function listed(): Promise<ExecutionEntry[]> {
  const found: ExecutionEntry[] = [];
  for (let before = ''; ;) {
    const answer = await call(`/executions?limit=3${before}`);
    if (answer.status !== 200) throw new Error(await answer.text());
    const { executions, next } = await answer.json<{ executions: ExecutionEntry[]; next: string | null }>();
    found.push(...executions);
    if (next === null) return found;
    before = `&before=${next}`;
  }
}

test('[Z2] each run is listed once, after its shard was away, its answer was lost, and its host was lost', async () => {
  const { write } = DirectoryObject.prototype;
  let count = 0;
  const spy = vi.spyOn(DirectoryObject.prototype, 'write').mockImplementation(function away(
    this: DirectoryObject,
    record,
  ) {
    count += 1;
    // Every second write arrives, without an answer.
    if (count % 2 === 0) write.call(this, record);
    throw new Error('the shard is away');
  });
  const made = await Promise.all(
    [1, 2, 3, 4, 5, 6, 7, 8].map(async (n) => await execute(`<response final="true">${n}</response>`)),
  );
  const runs = made.map(({ run_id: id }) => id).toSorted();
  const ours = async (): Promise<string[]> =>
    (await listed()).flatMap(({ execution_id: id }) => (runs.includes(id) ? [id] : [])).toSorted();
  await expect.poll(() => count).toBeGreaterThanOrEqual(runs.length);
  expect((await ours()).length).toBeLessThan(runs.length);
  await abortAllDurableObjects();
  spy.mockRestore();
  // A request starts the session's next host, which writes what its outbox lacks when it is due.
  for (const { session_id: id } of made) {
    await expect
      .poll(async () => {
        await runDurableObjectAlarm(SESSIONS.getByName(id));
        return await ours();
      })
      .toContain(made.find(({ session_id: session }) => session === id)?.run_id);
  }
  expect(await ours()).toEqual(runs);
  expect(new Set(made.map(({ session_id: id }) => shardOf(null, id))).size).toBeGreaterThan(1);
});

test('[H1] the list of executions has messages and workflows, with their kinds and errors', async () => {
  const chat = await newSession();
  const answer = await post(`/agent/session/${chat}/message`, { content: 'hello', stream: false });
  const { run_id: message } = await answer.json<{ run_id: string }>();
  const inputs = { orders: [{ item: 'lamp', price: 1e300, quantity: 1e300 }] };
  const run = await post('/workflows/data_pipeline/runs', { inputs, stream: false });
  const { run_id: failed, session_id: workflow } = await run.json<{ run_id: string; session_id: string }>();
  const found = async (id: string, query = ''): Promise<ExecutionEntry | null> => {
    const { executions } = await (await call(`/executions${query}`)).json<{ executions: ExecutionEntry[] }>();
    return executions.find(({ execution_id: one }) => one === id) ?? null;
  };
  await expect
    .poll(() => found(message, '?kind=chat'))
    .toMatchObject({ session_id: chat, run_id: message, kind: 'chat', status: 'completed', error: null });
  await expect
    .poll(() => found(failed, '?kind=workflow&status=failed'))
    .toMatchObject({
      session_id: workflow,
      kind: 'workflow',
      agent: 'data_pipeline',
      error: { code: 'step_failed' },
    });
  expect(await found(message, '?kind=workflow')).toBeNull();
  expect(await found(message, '?kind=chat&status=failed')).toBeNull();
  expect(await (await call(`/executions/${message}`)).json()).toMatchObject({
    session_id: chat,
    status: 'completed',
  });
  // All runs of a deleted session leave the list, and no others.
  await call(`/agent/session/${chat}`, { method: 'DELETE' });
  await expect.poll(() => found(message)).toBeNull();
  expect(await found(failed)).not.toBeNull();
});
