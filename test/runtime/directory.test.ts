/** The directory of sessions in workerd: real sessions, shards, keys and tokens (C6). */
import {
  abortAllDurableObjects,
  createExecutionContext,
  runDurableObjectAlarm,
  runInDurableObject,
  waitOnExecutionContext,
} from 'cloudflare:test';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { shardOf, shardsOf } from '../../src/domain/directory.ts';
import type { DirectoryEntry, DirectoryPage } from '../../src/domain/directory.ts';
import { limits } from '../../src/domain/limits.ts';
import type { SqlDatabase, SqlRow } from '../../src/domain/ports/storage.ts';
import { edge } from '../../src/durable/edge.ts';
import type { Env } from '../../src/durable/env.ts';
import { DirectoryObject } from '../../src/durable/objects/directory-object.ts';
import { platformClock } from '../../src/durable/platform.ts';
import { newSessionId } from '../../src/durable/session-ids.ts';
import { QuarantineSlots } from '../../src/engine/replay/quarantine-slots.ts';
import { DirectoryTable } from '../../src/policies/directory-table.ts';
import { DIRECTORY, here, SESSIONS } from './bindings.ts';
import { notesIn } from './notes-in.ts';
import { call, chatRecord, events, execute, newSession, post } from './client.ts';

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
afterEach(() => void vi.restoreAllMocks());

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

  const start = async (id: string, text: string): Promise<Response> => {
    const body = JSON.stringify({ protocol_text: text, stream: true });
    return await SESSIONS.getByName(id).fetch(new Request('http://session/-/execute', { method: 'POST', body }));
  };

  test('shows that a session is running', async () => {
    const id = await newSession();
    const run = await start(id, '<action type="tool" name="echo" id="a">{"delay_ms": 50000}</action>');
    await events(run, ({ type }) => type === 'action_started');
    await expect.poll(() => find(id, '?status=running')).toMatchObject({ status: 'running' });
    await call(`/agent/session/${id}/cancel`, { method: 'POST' });
    await expect.poll(() => find(id, '?status=idle')).toMatchObject({ status: 'idle' });
    expect(await find(id, '?status=running')).toBeNull();
  });

  test('shows that a session waits for people', async () => {
    const tool =
      'kind: Tool\nversion: "1.0"\nname: seal\nsummary: Seals.\nimplementation: {type: builtin, entrypoint: echo}\nparameters: {text: string}\napproval: always\n';
    const agent =
      'kind: Agent\nversion: "1.0"\nname: sealer\nsummary: Seals.\npersona: {agent: You seal.}\nimport: {tools: [seal]}\n';
    await call('/manifests/tool/seal', { method: 'PUT', body: tool });
    await call('/manifests/agent/sealer', { method: 'PUT', body: agent });
    const id = await newSession('sealer');
    const asks = '<action type="tool" mode="async" id="b">{"name": "seal", "parameters": {"text": "x"}}</action>';
    await events(await start(id, asks));
    await expect.poll(() => find(id, '?status=waiting&agent=sealer')).toMatchObject({ status: 'waiting' });
    await remove(id);
  });

  test('lists neither executions nor sub-agents, nor sessions of stateless clients', async () => {
    const { session_id: execution } = await execute('<response final="true">ok</response>');
    const stateless = await post('/v1/chat/completions', {
      model: 'assistant',
      messages: [{ role: 'user', content: 'hello' }],
    });
    expect(stateless.status).toBe(200);
    await stateless.text();
    const id = await newSession();
    await expect.poll(() => find(id)).not.toBeNull();
    const { sessions } = await read();
    expect(sessions.map(({ session_id: session }) => session)).not.toContain(execution);
    expect(sessions.filter(({ title }) => title === 'hello')).toEqual([]);
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

  test('a session that is made again under the same id meanwhile is listed once', async () => {
    const id = await newSessionId(here);
    const stub = SESSIONS.getByName(id);
    await stub.create({ ...chatRecord(id), user_id: 'first' }, {});
    await expect.poll(() => find(id)).toMatchObject({ user_id: 'first' });
    const shard = away('forget');
    await remove(id);
    await stub.create({ ...chatRecord(id), user_id: 'second' }, {});
    await expect.poll(() => shard.calls()).toBeGreaterThan(0);
    vi.restoreAllMocks();
    later(3_600_000);
    await say(id, 'And now?');
    await expect
      .poll(async () => (await read()).sessions.filter(({ session_id: session }) => session === id))
      .toMatchObject([{ user_id: 'second', title: 'And now?' }]);
  });

  test('fails the list with 503 instead of leaving sessions out', async () => {
    const list = vi.spyOn(DirectoryObject.prototype, 'list');
    list.mockImplementationOnce(() => {
      throw new Error('the shard is away');
    });
    const answer = await call('/sessions');
    expect([answer.status, await answer.json()]).toMatchObject([503, { code: 'directory_unavailable' }]);
  });

  test('a host that is lost before its first write: the alarm of the creation writes it', async () => {
    const shard = away('write');
    const id = await newSession();
    await expect.poll(() => shard.calls()).toBeGreaterThan(0);
    // As if nothing had been tried.
    await runInDurableObject(SESSIONS.getByName(id), async (_object, { storage }) => {
      storage.sql.exec(`UPDATE session SET notes = json_remove(notes, '$."directory:retry"')`);
      await storage.setAlarm(platformClock.now() + 30_000);
      await storage.sync();
    });
    vi.restoreAllMocks();
    await abortAllDurableObjects();
    expect(await runDurableObjectAlarm(SESSIONS.getByName(id))).toBe(true);
    await expect.poll(() => find(id)).not.toBeNull();
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

  test('[Z2] a session of an earlier version has its notes in the key-value storage: it is not listed twice, and forgotten once', async () => {
    const id = await newSession();
    await expect.poll(() => find(id)).not.toBeNull();
    await runInDurableObject(SESSIONS.getByName(id), async (_object, { storage }) => {
      storage.kv.put('directory', { ...(notesIn(storage)['directory'] as object), number: 7 });
      storage.sql.exec(`ALTER TABLE session DROP COLUMN notes`);
      await storage.sync();
    });
    await abortAllDurableObjects();
    const written = vi.spyOn(DirectoryObject.prototype, 'write');
    await (await call(`/agent/session/${id}`)).text();
    expect(written).not.toHaveBeenCalled();
    await say(id, 'later');
    await expect.poll(() => find(id)).toMatchObject({ title: 'later' });
    const numbers = written.mock.calls.map(([{ number }]) => number);
    expect(numbers[0]).toBe(8);
    const kept = await runInDurableObject(SESSIONS.getByName(id), (_object, { storage }) => [
      storage.kv.get('directory'),
      (notesIn(storage)['directory'] as { readonly number: number }).number,
    ]);
    expect(kept).toEqual([undefined, numbers.at(-1)]);
    expect(await remove(id)).toBe(204);
    await expect.poll(() => find(id)).toBeNull();
    await expect.poll(() => leftIn(id)).toEqual([[], [], null]);
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

test('C6: a page reads each row once, whatever its filters are', async () => {
  const rowsRead = await runInDurableObject(DIRECTORY.getByName('0/rows'), (_object, { storage }) => {
    storage.sql.exec(
      `WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 19999)
       INSERT INTO sessions (session_id, incarnation, number, updated_at, agent, user_id, status, entry)
       SELECT 'ses_' || printf('%032x', n), '', 1, n, 'a', 'ann', 'idle', '{}' FROM numbers`,
    );
    return [
      {},
      { userId: 'ann' },
      { userId: 'ann', status: 'idle' },
      { userId: 'ann', status: 'running' },
      { userId: 'ann', agents: ['b', 'c'] },
      { agents: ['zz'], status: 'idle' },
      { agents: ['a', 'b'] },
      { status: 'idle' },
    ].map((filter): [string, number] => {
      let read = 0;
      const exec: SqlDatabase['exec'] = (sql, ...values) => {
        const cursor = storage.sql.exec(sql, ...(values as SqlStorageValue[]));
        const rows = cursor.toArray();
        read += cursor.rowsRead;
        return rows as SqlRow[];
      };
      const table = new DirectoryTable({ exec } as SqlDatabase, platformClock.now);
      read = 0;
      table.list({ limit: 2, before: null, userId: null, agents: null, status: null, ...filter } as DirectoryPage);
      return [JSON.stringify(filter), read];
    });
  });
  // The scan has parts; each may read one row more.
  for (const [filter, read] of rowsRead) expect(read, filter).toBeLessThan(limits.directoryScannedRows + 20);
});

const KEYED: Env = {
  ...here,
  SESSION_TOKEN_SECRET: 'a-secret-of-this-test-that-is-long-enough',
  API_KEYS: 'ops:admin:k-ops@shop,app:run:k-app@shop,eve:run:k-eve,big:run:k-big',
};

async function ask(key: string, path: string, body?: unknown): Promise<Response> {
  const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const request = new Request(`http://127.0.0.1:8787${path}`, { ...init, headers });
  const ctx = createExecutionContext();
  const response = await edge.fetch?.(request as Request<unknown, IncomingRequestCfProperties>, KEYED, ctx);
  if (response === undefined) throw new Error('the Worker has no fetch');
  const text = await response.arrayBuffer();
  await waitOnExecutionContext(ctx);
  return new Response(text, response);
}

test('C6: keys list the sessions of their namespace, user tokens those of their user with their agents', async () => {
  const create = async (key: string, agent: string, user: string): Promise<string> => {
    const made = await (await ask(key, `/agent/${agent}/session`, { user_id: user })).json<{ session_id: string }>();
    return made.session_id;
  };
  const one = await create('k-ops', 'assistant', 'ann');
  const two = await create('k-app', 'notes_keeper', 'ann');
  const three = await create('k-app', 'assistant', 'bob');
  const other = await create('k-eve', 'assistant', 'ann');
  const ids = async (credential: string, search = ''): Promise<string[]> => {
    const { sessions } = await (await ask(credential, `/sessions${search}`)).json<Page>();
    return sessions.map(({ session_id: id }) => id).toSorted();
  };
  await expect.poll(() => ids('k-ops')).toEqual([one, two, three].toSorted());
  await expect.poll(() => ids('k-eve')).toEqual([other]);
  expect(await ids('k-app', '?user_id=ann')).toEqual([one, two].toSorted());
  const issue = async (body: object): Promise<string> =>
    (await (await ask('k-app', '/tokens', { scopes: ['read'], ...body })).json<{ token: string }>()).token;
  const ann = await issue({ user_id: 'ann' });
  expect(await ids(ann)).toEqual([one, two].toSorted());
  expect(await ids(ann, '?agent=assistant')).toEqual([one]);
  expect(await ids(await issue({ user_id: 'ann', agents: ['notes_keeper'] }))).toEqual([two]);
  expect((await ask(ann, '/sessions?user_id=bob')).status).toBe(403);
  const { token } = await (
    await ask('k-app', `/agent/session/${one}/tokens`, { scopes: ['read'] })
  ).json<{ token: string }>();
  expect((await ask(token, '/sessions')).status).toBe(403);
});

test('C6: 100,000 sessions are listed page by page, each once, newest first', async () => {
  const names = shardsOf('big');
  const perShard = 6_250;
  await Promise.all(
    names.map((name, shard) =>
      runInDurableObject(DIRECTORY.getByName(name), (_object, { storage }) => {
        // Eight sessions at each time.
        storage.sql.exec(
          `WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1 - 1),
             made AS (SELECT 'ses_' || printf('%032x', n * 16 + ?2) AS id, CAST(n * 16 + ?2 AS INTEGER) / 8 AS at,
               CASE WHEN n % 1000 = 0 THEN 'waiting' ELSE 'idle' END AS status FROM numbers)
           INSERT INTO sessions (session_id, incarnation, number, updated_at, agent, user_id, status, entry)
           SELECT id, '', 1, at, 'assistant', 'ann', status,
             json_object('session_id', id, 'agent', 'assistant', 'user_id', 'ann', 'title', NULL, 'status', status,
               'created_at', 1, 'updated_at', at, 'cost', NULL) FROM made`,
          perShard,
          shard,
        );
      }),
    ),
  );
  const seen: number[] = [];
  for (let before = ''; ;) {
    const answer = await ask('k-big', `/sessions?limit=100${before}`);
    if (answer.status !== 200) throw new Error(await answer.text());
    const { sessions, next } = await answer.json<Page>();
    seen.push(...sessions.map(({ session_id: id }) => Number.parseInt(id.slice(4), 16)));
    if (next === null) break;
    before = `&before=${next}`;
  }
  const count = names.length * perShard;
  expect(seen).toEqual(Array.from({ length: count }, (_, at) => count - 1 - at));
  const waiting = await (await ask('k-big', '/sessions?status=waiting&user_id=ann&limit=100')).json<Page>();
  expect([waiting.sessions.length, waiting.next === null]).toEqual([expect.any(Number), false]);
});

test('C6: what an earlier host sent late does not overwrite what a later one wrote', async () => {
  const id = await newSession();
  await say(id, 'Newest');
  await expect.poll(() => find(id)).toMatchObject({ title: 'Newest' });
  const entry = await find(id);
  const { incarnation = '' } = await runInDurableObject(
    SESSIONS.getByName(id),
    (_object, { storage }) => notesIn(storage)['directory'] as { readonly incarnation: string },
  );
  expect(incarnation).toMatch(/^[0-9a-f]{12}$/);
  if (entry === null) throw new Error('not listed');
  await here.DIRECTORY.getByName(shardOf(null, id)).write({
    session_id: id,
    incarnation,
    number: 1,
    runs: [],
    entry: { ...entry, title: 'Late', updated_at: entry.updated_at + 1_000 },
  });
  expect(await find(id)).toEqual(entry);
});
