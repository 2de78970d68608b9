/** Edge relics in Durable Objects: shared and private scopes, evictions, alarms and deletions (R6). */
import { abortAllDurableObjects, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { expect, test, vi } from 'vitest';
import type { RunResult } from '../../src/view/result.ts';
import { storedKey } from './objects.ts';
import { call, events, execute, manifest, newSession, post, upload } from './client.ts';
import { here, RELICS, SESSIONS } from './bindings.ts';
import { relicOf } from '../support/definitions.ts';
import { eventsOf } from '../support/events.ts';

const agent = 'notes_keeper';

const relic = (name: string, parameters: unknown, id = 'a'): string =>
  `<action type="relic" id="${id}">${JSON.stringify({ name, parameters })}</action>`;

async function output(text: string): Promise<unknown> {
  const { actions } = await execute(text, { agent });
  const last = actions.at(-1);
  return last?.error ?? last?.output;
}

test('[R6] a shared relic keeps its state for all sessions, after an eviction too', async () => {
  expect(await output(relic('notes.set', { key: 'milk', value: 'two bottles' }))).toEqual({ key: 'milk', version: 1 });
  await abortAllDurableObjects();
  expect(await output(relic('notes.get', { key: 'milk' }))).toBe('two bottles');
});

test('[R6] a private relic belongs to one session', async () => {
  const text = [relic('event_log.append', { entry: 'x' }), relic('event_log.tail', {}, 'b')].join('');
  expect(await output(text.replace('id="b"', 'id="b" depends_on="a"'))).toMatchObject([{ number: 1, entry: 'x' }]);
  expect(await output(relic('event_log.tail', {}))).toEqual([]);
});

test('[R6] an edge sql relic reads what was written, and refuses forbidden statements with the reason', async () => {
  const text = [
    relic('tables.execute', { sql: 'CREATE TABLE t (n)' }),
    relic('tables.execute', { sql: 'INSERT INTO t VALUES (?), (?)', params: [1, 41] }, 'b'),
    relic('tables.query', { sql: 'SELECT sum(n) AS n FROM t' }, 'c'),
  ].join('');
  expect(await output(text)).toEqual({ rows: [{ n: 42 }], truncated: false });
  expect(await output(relic('tables.execute', { sql: 'PRAGMA user_version = 3' }))).toMatchObject({
    code: 'invalid_parameters',
  });
  const many = JSON.stringify(Array.from({ length: 3_000 }, () => 1));
  const endless = 'SELECT count(*) AS n FROM json_each(:many) a, json_each(:many) b, json_each(:many) c';
  expect(await output(relic('tables.query', { sql: endless, params: { many } }))).toMatchObject({ code: 'too_large' });
  const changes = ['CREATE TABLE t (n)', 'INSERT INTO t VALUES (1), (2)', 'CREATE INDEX i ON t (n)'];
  const more = ['CREATE VIEW v AS SELECT n FROM t', 'ALTER TABLE t ADD COLUMN m', 'DROP VIEW v'];
  const steps = [...changes, ...more].map((sql, at) => relic('tables.execute', { sql }, `s${at}`));
  const look = relic('tables.query', { sql: 'SELECT count(*) AS n FROM t a, t b, t c' }, 'look');
  const { actions } = await execute([...steps, look].join(''), { agent });
  expect(actions.map(({ status }) => status)).toEqual(actions.map(() => 'completed'));
  expect(actions.at(-1)?.output).toMatchObject({ rows: [{ n: 8 }] });
});

test('[R6] the real SQLite also refuses statements that could block the edge', async () => {
  const constants = `WITH c AS (VALUES (1),(2),(3),(4),(5),(6),(7),(8),(9),(10)) SELECT count(*) FROM c a, c b, c d, c e, c f, c g, c h, c i`;
  const own = `SELECT count(*) FROM json_each('[' || replace(hex(zeroblob(500000)), '0', '1,') || '1]')`;
  const nested = `${'SELECT x + x + x AS x FROM ('.repeat(14)}SELECT 1 AS x${')'.repeat(14)}`;
  for (const sql of [constants, own, nested]) {
    const code = expect.stringMatching(/^(?:too_large|invalid_parameters)$/) as string;
    expect(await output(relic('tables.query', { sql }))).toMatchObject({ code });
  }
  const changes = [
    'CREATE TABLE o (id INTEGER PRIMARY KEY, c INTEGER, amount INTEGER)',
    'CREATE TABLE c (id INTEGER PRIMARY KEY, name TEXT)',
    'CREATE INDEX oc ON o (c)',
    `INSERT INTO c VALUES (1, 'a'), (2, 'b'), (3, 'c')`,
    'INSERT INTO o (c, amount) VALUES (1, 5), (1, 7), (2, 9)',
    `INSERT INTO c VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET name = name || excluded.name`,
    'ALTER TABLE c RENAME COLUMN name TO title',
  ];
  const steps = changes.map((sql, at) => relic('tables.execute', { sql }, `s${at}`));
  const reads = [
    'SELECT title, sum(amount) AS n FROM c LEFT JOIN o ON o.c = c.id GROUP BY c.id ORDER BY 1',
    'SELECT id, sum(amount) OVER (PARTITION BY c ORDER BY id) AS n FROM o ORDER BY id',
    'SELECT id FROM c EXCEPT SELECT c FROM o UNION SELECT 9 ORDER BY 1',
    `SELECT json_group_array(title) AS n FROM c WHERE title LIKE '%x%' OR id IN (SELECT value FROM json_each('[2]'))`,
  ];
  const looks = reads.map((sql, at) => relic('tables.query', { sql }, `r${at}`));
  const { actions } = await execute([...steps, ...looks].join(''), { agent });
  expect(actions.map(({ error }) => error ?? null)).toEqual(actions.map(() => null));
  const rows = actions.slice(changes.length).map((action) => (action.output as { rows: unknown[] }).rows);
  expect(rows[0]).toEqual([
    { title: 'ax', n: 12 },
    { title: 'b', n: 9 },
    { title: 'c', n: null },
  ]);
  expect(rows[1]).toEqual([
    { id: 1, n: 5 },
    { id: 2, n: 12 },
    { id: 3, n: 9 },
  ]);
  expect(rows[2]).toEqual([{ id: 3 }, { id: 9 }]);
  expect(rows[3]).toEqual([{ n: '["ax","b"]' }]);
});

test('[R6] the quota is enforced in the real database', async () => {
  const value = 'x'.repeat(400_000);
  const texts = Array.from({ length: 8 }, (_, at) => relic('event_log.append', { entry: value }, `a${at}`)).join('');
  const { actions } = await execute(texts, { agent });
  expect(actions.slice(0, 4).map(({ status }) => status)).toEqual(Array.from({ length: 4 }, () => 'completed'));
  expect(actions.at(-1)?.error).toMatchObject({ code: 'relic_full' });
});

test('[R6] the alarm removes expired entries', async () => {
  await output(relic('notes.set', { key: 'brief', value: 1, ttl: 0.001 }));
  const stub = RELICS.getByName(JSON.stringify(['key:', 'notes']));
  await expect.poll(async () => await output(relic('notes.get', { key: 'brief' }))).toBeNull();
  await runDurableObjectAlarm(stub);
  await runInDurableObject(stub, (_object, { storage }) => {
    expect(storage.sql.exec(`SELECT key FROM cortex_relic_kv WHERE key = 'brief'`).toArray()).toEqual([]);
  });
});

test('[R6] the deletion of a session deletes its private relics', async () => {
  const id = await newSession(agent);
  const space = await storedKey(id);
  const stub = here.RELICS.getByName(JSON.stringify([space, 'event_log']));
  const log = { type: 'edge', store: 'log', ttlMs: null, quotaBytes: 1e6, schema: [] } as const;
  const append = { space, owner: null, endpoint: 'append', parameters: { entry: 'x' }, key: 'k' };
  expect(await stub.call({ ...append, relic: relicOf(log, { name: 'event_log' }) })).toMatchObject({ ok: true });
  await runInDurableObject(SESSIONS.getByName(id), (_object, { storage }) => {
    storage.kv.put('edgeRelics', ['event_log']);
  });
  expect((await call(`/agent/session/${id}`, { method: 'DELETE' })).status).toBe(204);
  expect(await stub.lookup('k')).toBeNull();
});

test('[R6] the private relics of an execution or a child are deleted when its run has ended', async () => {
  const look = 'target: scratch, action: get, parameters: { key: word }';
  await upload(
    manifest('Relic', 'scratch', 'scope: session\nimplementation: {type: edge, store: kv}'),
    manifest(
      'Workflow',
      'scribble',
      `import: { relics: [scratch] }
steps:
  - { name: keep, type: relic, target: scratch, action: set, parameters: { key: word, value: x } }
  - { name: look, type: relic, ${look} }
outputs: { word: steps.look }`,
    ),
    manifest('Agent', 'caller', 'persona: You call.\nimport: {workflows: [scribble]}'),
  );
  const alone = await (await post('/workflows/scribble/runs', { stream: false })).json<RunResult>();
  expect(JSON.stringify(alone)).toContain('"response":"{\\"word\\":\\"x\\"}"');
  const parent = await execute('<action type="workflow" id="w">{"name":"scribble"}</action>', { agent: 'caller' });
  const seen = await events(
    await call(`/agent/session/${parent.session_id}/events`),
    ({ type }) => type === 'agent_completed',
  );
  expect(eventsOf(seen, 'action_completed')[0]?.data.output).toEqual({ word: 'x' });
  const [child = ''] = await runInDurableObject(SESSIONS.getByName(parent.session_id), (_object, { storage }) =>
    [...storage.kv.list({ prefix: 'child:' })].map(([key]) => key.slice('child:'.length)),
  );
  for (const id of [alone.session_id, child]) {
    const stub = RELICS.getByName(JSON.stringify([id, 'scratch']));
    const tables = (): Promise<number> =>
      runInDurableObject(
        stub,
        (_object, { storage }) =>
          storage.sql.exec(`SELECT name FROM sqlite_master WHERE name LIKE 'cortex_relic_%'`).toArray().length,
      );
    await expect.poll(tables, { timeout: 60_000 }).toBe(0);
  }
});

test('[R6] a relic that is deleted when it is idle has its alarm before it has content', async () => {
  const log = { type: 'edge', store: 'log', ttlMs: null, quotaBytes: 1e6, schema: [] } as const;
  const relic = { ...relicOf(log, { name: 'event_log' }), persistent: false, idleMs: 1_000_000 };
  const append = { space: 's', owner: null, endpoint: 'append', parameters: { entry: 'x' }, relic };
  const stub = RELICS.getByName('written-together');
  await runInDurableObject(stub, async (object, { storage }) => {
    const failing = vi.spyOn(storage, 'setAlarm').mockRejectedValueOnce(new Error('no alarm'));
    await expect(object.call({ ...append, key: 'first' })).rejects.toThrow('no alarm');
    failing.mockRestore();
    expect(await object.lookup('first')).toBeNull();
    expect(await object.call({ ...append, key: 'second' })).toMatchObject({ ok: true });
    // What cannot be deleted keeps its alarm.
    const full = vi.spyOn(storage, 'deleteAll').mockRejectedValueOnce(new Error('not now'));
    await expect(object.forget()).rejects.toThrow('not now');
    full.mockRestore();
    expect(await storage.getAlarm()).not.toBeNull();
    storage.kv.put('idleAt', 1);
  });
  await runDurableObjectAlarm(stub);
  expect(await runInDurableObject(stub, async (object) => await object.lookup('second'))).toBeNull();
});
