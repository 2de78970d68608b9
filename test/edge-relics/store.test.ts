/** The data that edge relics store, expire and refuse (R6). */
import { describe, expect, test } from 'vitest';
import type { Json, JsonObject } from '../../src/domain/json.ts';
import { limits } from '../../src/domain/limits.ts';
import { WorkMeter } from '../../src/domain/work.ts';
import { readStatement } from '../../src/edge-relics/sql.ts';
import { RelicStore } from '../../src/edge-relics/store.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { failEach, failingWrites } from '../support/failing-writes.ts';
import { openNodeSql } from '../support/node-sql.ts';
import { relicOf } from '../support/definitions.ts';

interface Kept {
  readonly ttlMs?: number | null;
  readonly quotaBytes?: number;
  readonly schema?: readonly string[];
}

function open(store: 'kv' | 'log' | 'sql', { ttlMs = null, quotaBytes = 1_000_000, schema = [] }: Kept = {}) {
  const sql = openNodeSql();
  const clock = new VirtualClock();
  const pages = (name: string): number => Number(Object.values(sql.exec(`PRAGMA ${name}`)[0] ?? {})[0]);
  const relics = new RelicStore({
    sql,
    sizeBytes: () => pages('page_count') * pages('page_size'),
    now: () => clock.now(),
  });
  const relic = relicOf({ type: 'edge', store, ttlMs, quotaBytes, schema });
  let calls = 0;
  const ask = (endpoint: string, parameters: JsonObject = {}, key = `k${(calls += 1)}`) =>
    relics.call({ space: 's', relic, endpoint, parameters, key, owner: null });
  const done = (endpoint: string, parameters: JsonObject = {}, key?: string): Json => {
    const outcome = ask(endpoint, parameters, key);
    if (!outcome.ok) throw new Error(`${outcome.error.code}: ${outcome.error.message}`);
    return outcome.output;
  };
  const refused = (endpoint: string, parameters: JsonObject = {}): string => {
    const outcome = ask(endpoint, parameters);
    return outcome.ok ? 'done' : outcome.error.code;
  };
  /** Steps that a call is charged, whether it succeeds or not. */
  const charged = (endpoint: string, parameters: JsonObject = {}): number => {
    const meter = new WorkMeter(limits.relicCallSteps);
    relics.call({ space: 's', relic, endpoint, parameters, key: `k${(calls += 1)}`, owner: null }, meter);
    return meter.spent;
  };
  return { relics, clock, sql, done, refused, charged };
}

describe('[R6] the charge of a call', () => {
  const chargeOf = (store: 'kv' | 'log' | 'sql', prepare: [string, JsonObject][], ...asked: [string, JsonObject]) => {
    const { done, charged } = open(store);
    for (const [endpoint, parameters] of prepare) done(endpoint, parameters);
    return charged(...asked);
  };
  const long = 'x'.repeat(160_000);
  const filled = Array.from({ length: 200 }, (_, at): [string, JsonObject] => ['append', { entry: at }]);
  const join = 'WITH t(x) AS (VALUES (1), (2), (3), (4), (5), (6)) SELECT count(*) AS n FROM t a, t b, t c, t d, t e';

  test.each<[string, number]>([
    ['a statement, by its maximum work', chargeOf('sql', [], 'query', { sql: join })],
    ['a refused statement', chargeOf('sql', [], 'query', { sql: `${join}, t f, t g, t h, t i, t j, t k` })],
    ['a write of a long value', chargeOf('kv', [], 'set', { key: 'a', value: long })],
    ['a page with a long value', chargeOf('kv', [['set', { key: 'a', value: long }]], 'list', {})],
    ['scanned entries', chargeOf('log', filled, 'range', { limit: 1, filter: 'none' })],
  ])('%s', (_name, steps) => {
    expect(steps).toBeGreaterThan(5_000);
    expect(steps).toBeLessThanOrEqual(limits.relicCallSteps);
  });

  test('a short call costs almost nothing', () => {
    expect(chargeOf('kv', [], 'set', { key: 'a', value: 1 })).toBeLessThan(10);
  });
});

describe('[R6] kv', () => {
  test('a value can be read after set and is gone after delete', () => {
    const { done } = open('kv');
    expect(done('set', { key: 'a', value: { n: [1, null] } })).toEqual({ key: 'a', version: 1 });
    expect(done('get', { key: 'a' })).toEqual({ n: [1, null] });
    expect(done('get', { key: 'b', default: 'none' })).toBe('none');
    expect(done('delete', { key: 'a' })).toEqual({ key: 'a', deleted: true });
    expect(done('get', { key: 'a' })).toBeNull();
  });

  test('a set with an outdated version changes nothing', () => {
    const { done, refused } = open('kv');
    done('set', { key: 'a', value: 1, if_version: 0 });
    expect(refused('set', { key: 'a', value: 2, if_version: 0 })).toBe('relic_conflict');
    expect(done('get', { key: 'a' })).toBe(1);
    expect(done('set', { key: 'a', value: 2, if_version: 1 })).toEqual({ key: 'a', version: 2 });
  });

  test('a list continues where its page ended', () => {
    const { done } = open('kv');
    for (const key of ['b', 'a', 'c', 'x_']) done('set', { key, value: key });
    expect(done('list', { limit: 2, values: false })).toEqual({ keys: ['a', 'b'], next: 'b' });
    expect(done('list', { limit: 2, values: false, after: 'b' })).toEqual({ keys: ['c', 'x_'], next: 'x_' });
    expect(done('list', { prefix: 'x', values: false })).toEqual({ keys: ['x_'], next: null });
  });

  test('[J3] a repeated call is executed once, and gets the same answer', () => {
    const { done, relics } = open('kv');
    expect(done('increment', { key: 'n', by: 2 }, 'call')).toBe(2);
    expect(done('increment', { key: 'n', by: 2 }, 'call')).toBe(2);
    expect(done('get', { key: 'n' })).toBe(2);
    expect(relics.lookup('call')).toEqual({ ok: true, output: 2 });
    expect(relics.lookup('another')).toBeNull();
  });

  test('a refused call is not recorded', () => {
    const { done, refused, relics } = open('kv');
    done('set', { key: 'n', value: 'words' });
    expect(refused('increment', { key: 'n' })).toBe('relic_error');
    expect(relics.lookup('k2')).toBeNull();
  });

  test('an expired value is not listed, and is removed when it is due', () => {
    const { done, relics, clock, sql } = open('kv', { ttlMs: 10_000 });
    done('set', { key: 'a', value: 1 });
    done('set', { key: 'b', value: 1, ttl: 1 });
    expect(relics.nextExpiry()).toBe(clock.now() + 1_000);
    clock.advance(1_000);
    expect(done('get', { key: 'b' })).toBeNull();
    relics.purge();
    expect(sql.exec(`SELECT key FROM cortex_relic_kv`)).toEqual([{ key: 'a' }]);
    expect(relics.nextExpiry()).toBe(clock.now() + 9_000);
  });

  test('a full store refuses new data, keeps the existing data, and can be emptied', () => {
    const { done, refused } = open('kv', { quotaBytes: 100_000 });
    const value = 'x'.repeat(20_000);
    let kept = 0;
    while (refused('set', { key: `k${kept}`, value }) === 'done') kept += 1;
    expect(kept).toBeGreaterThan(2);
    expect(kept).toBeLessThan(10);
    expect(refused('set', { key: 'more', value })).toBe('relic_full');
    expect(done('get', { key: 'k0' })).toBe(value);
    expect(done('delete', { key: 'k0' })).toMatchObject({ deleted: true });
    expect(refused('set', { key: 'small', value: 1 })).toBe('done');
  });

  test('a page scans a limited number of entries, and the next page continues there', () => {
    const { done, sql, clock } = open('kv', { quotaBytes: 10_000_000 });
    const insert = `INSERT INTO cortex_relic_kv WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c WHERE n < ?1)
      SELECT printf('gone%06d', n), '1', 1, 0, ?2 FROM c`;
    sql.exec(insert, limits.relicScannedRows + 10, clock.now() - 1);
    done('set', { key: 'here', value: 1 });
    const { keys, next } = done('list', { values: false }) as JsonObject;
    expect(keys).toEqual([]);
    expect(next).toBe(`gone${String(limits.relicScannedRows).padStart(6, '0')}`);
    expect(done('list', { values: false, after: next as string })).toEqual({ keys: ['here'], next: null });
    expect(done('list', { values: false, prefix: 'her' })).toEqual({ keys: ['here'], next: null });
  });

  test('keys are listed by prefix, whatever its last character is', () => {
    const { done } = open('kv');
    for (const key of ['a', 'a\u{10ffff}', 'a\u{10ffff}b', 'b', '\ud7ff', '\ue000']) done('set', { key, value: 1 });
    const keys = (prefix: string): Json => (done('list', { values: false, prefix }) as JsonObject)['keys'] as Json;
    expect(keys('a')).toEqual(['a', 'a\u{10ffff}', 'a\u{10ffff}b']);
    expect(keys('a\u{10ffff}')).toEqual(['a\u{10ffff}', 'a\u{10ffff}b']);
    expect(keys('\ud7ff')).toEqual(['\ud7ff']);
  });

  test('expired values are removed in batches', () => {
    const { relics, sql, clock } = open('kv', { quotaBytes: 10_000_000 });
    const insert = `INSERT INTO cortex_relic_kv WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c WHERE n < ?1)
      SELECT 'k' || n, '1', 1, 0, ?2 FROM c`;
    sql.exec(insert, limits.relicPurgedRows + 5, clock.now() - 1);
    relics.purge();
    expect(sql.exec('SELECT count(*) AS n FROM cortex_relic_kv')).toEqual([{ n: 5 }]);
    expect(relics.nextExpiry()).toBe(clock.now() - 1);
    relics.purge();
    expect(relics.nextExpiry()).toBeNull();
  });

  test('a value past the size limit is refused', () => {
    expect(open('kv').refused('set', { key: 'a', value: 'x'.repeat(limits.relicValueBytes) })).toBe('too_large');
  });
});

describe('[R6] log', () => {
  test('entries have numbers and times; the tail is the latest ones, oldest first', () => {
    const { done, clock } = open('log');
    for (const entry of ['a', { b: 1 }, 'c']) {
      done('append', { entry });
      clock.advance(60_000);
    }
    expect(done('tail', { limit: 2 })).toMatchObject([
      { number: 2, entry: { b: 1 } },
      { number: 3, entry: 'c' },
    ]);
    expect(done('range', { limit: 2 })).toMatchObject({ entries: [{ number: 1 }, { number: 2 }], next: 2 });
    expect(done('tail', { since: '2m' })).toMatchObject([{ number: 2 }, { number: 3 }]);
    expect(done('tail', { filter: '"b"' })).toEqual([]);
    expect(done('tail', { filter: 'c' })).toMatchObject([{ number: 3 }]);
  });

  test('a filter scans a limited number of bytes, and the next page continues there', () => {
    const { done } = open('log', { quotaBytes: 50_000_000 });
    const entry = 'a'.repeat(500_000);
    for (let n = 0; n < 12; n += 1) done('append', { entry });
    done('append', { entry: `${entry}b` });
    const filter = `${'a'.repeat(250_000)}b`;
    let page = done('range', { filter }) as { entries: unknown[]; next: number | null };
    let pages = 1;
    while (page.entries.length === 0 && page.next !== null) {
      page = done('range', { filter, after: page.next }) as typeof page;
      pages += 1;
    }
    expect(page.entries).toMatchObject([{ number: 13 }]);
    expect(pages).toBeGreaterThanOrEqual(2);
    expect(done('tail', { filter })).toMatchObject([{ number: 13 }]);
  });

  test('the tail scans only the latest entries', () => {
    const { done, sql, clock } = open('log', { quotaBytes: 50_000_000 });
    done('append', { entry: 'first' });
    const insert = `INSERT INTO cortex_relic_log (at, entry) WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c WHERE n < ?1)
      SELECT ?2, '"x"' FROM c`;
    sql.exec(insert, limits.relicScannedRows, clock.now());
    expect(done('tail', { filter: 'first' })).toEqual([]);
    expect(done('range', { filter: 'first' })).toMatchObject({ entries: [{ number: 1 }] });
  });

  test('a repeated append adds nothing', () => {
    const { done } = open('log');
    expect(done('append', { entry: 1 }, 'once')).toEqual({ number: 1 });
    expect(done('append', { entry: 1 }, 'once')).toEqual({ number: 1 });
    expect(done('tail')).toHaveLength(1);
  });
});

describe('[R6] the number of rows that a statement visits is limited', () => {
  const filled = () => {
    const kept = open('sql', { schema: [], quotaBytes: 50_000_000 });
    kept.done('execute', { sql: 'CREATE TABLE big (id INTEGER PRIMARY KEY, other INTEGER)' });
    kept.done('execute', { sql: 'CREATE TABLE small (n INTEGER)' });
    const ids = JSON.stringify(Array.from({ length: 20_000 }, (_, n) => n));
    kept.done('execute', { sql: 'INSERT INTO big (other) SELECT value FROM json_each(?)', params: [ids] });
    kept.done('execute', { sql: 'INSERT INTO small VALUES (1), (2), (3)' });
    return kept;
  };

  test.each([
    'SELECT count(*) AS n FROM big a, big b',
    'SELECT count(*) AS n FROM big AS a, big AS b, small',
    'WITH x AS (SELECT a.id FROM big a, small) SELECT count(*) AS n FROM x, x AS y WHERE x.id + y.id > 3',
    'SELECT id, (SELECT count(*) FROM big b WHERE b.other + 1 > a.other) AS n FROM big a ORDER BY n',
    'SELECT count(*) AS n FROM (SELECT id FROM big UNION ALL SELECT other FROM big) a, big b',
  ])('%s is refused', (sql) => {
    expect(filled().refused('query', { sql })).toBe('too_large');
  });

  test.each([
    ['a loop over JSON texts', 'SELECT count(*) AS n FROM json_each(:j) a, json_each(:j) b, json_each(:j) c'],
    ['a write', 'INSERT INTO small SELECT a.id FROM big a, big b'],
  ])('%s is refused', (_what, sql) => {
    const params = { j: JSON.stringify(Array.from({ length: 2_000 }, () => 1)) };
    expect(filled().refused(sql.startsWith('INSERT') ? 'execute' : 'query', { sql, params })).toBe('too_large');
  });

  test.each([
    ['SELECT count(*) AS n FROM big a, small b', 60_000],
    ['SELECT count(*) AS n FROM big a JOIN big b ON a.id = b.other', 19_999],
    ['SELECT count(*) AS n FROM big WHERE id IN (SELECT other FROM big)', 19_999],
    ['SELECT count(*) AS n FROM (SELECT * FROM big UNION ALL SELECT * FROM big)', 40_000],
    ['SELECT count(*) AS n FROM small a, small b, small c, small d', 81],
  ])('%s is allowed', (sql, n) => {
    expect(filled().done('query', { sql })).toMatchObject({ rows: [{ n }] });
  });
});

describe('[R6] sql', () => {
  const schema = ['CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)'];

  test('values are bound by position and by name', () => {
    const { done } = open('sql', { schema });
    const evil = `'); DROP TABLE t; --`;
    expect(done('execute', { sql: 'INSERT INTO t (name) VALUES (?), (?)', params: [evil, 'b'] })).toEqual({
      changes: 2,
    });
    expect(done('query', { sql: 'SELECT name FROM t WHERE id = :id', params: { id: 1 } })).toEqual({
      rows: [{ name: evil }],
      truncated: false,
    });
    expect(done('execute', { sql: 'DELETE FROM t RETURNING id' })).toEqual({
      changes: 2,
      rows: [{ id: 1 }, { id: 2 }],
      truncated: false,
    });
  });

  test('a query cannot change data, whatever its text is', () => {
    const { done, refused } = open('sql', { schema });
    done('execute', { sql: `INSERT INTO t (name) VALUES ('a')` });
    for (const sql of ['DELETE FROM t', 'WITH x AS (SELECT 1) DELETE FROM t', 'SELECT 1) ; DELETE FROM t; --']) {
      expect(refused('query', { sql })).not.toBe('done');
    }
    expect(done('query', { sql: 'SELECT count(*) AS n FROM t' })).toMatchObject({ rows: [{ n: 1 }] });
  });

  test('a long answer is cut and marked', () => {
    const { done } = open('sql', { schema, quotaBytes: 5_000_000 });
    const rows = Array.from({ length: 1_200 }, () => '(1)').join(', ');
    done('execute', { sql: 'CREATE TABLE n (x)' });
    done('execute', { sql: `INSERT INTO n VALUES ${rows}` });
    const { rows: shown, truncated } = done('query', { sql: 'SELECT x FROM n -- all' }) as JsonObject;
    expect(shown).toHaveLength(limits.relicPageRows);
    expect(truncated).toBe(true);
  });

  test('a row larger than an answer is refused; bytes are returned as base64', () => {
    const { done, refused } = open('sql', { quotaBytes: 50_000_000 });
    done('execute', { sql: 'CREATE TABLE b (x)' });
    for (let n = 0; n < 3; n += 1) done('execute', { sql: 'INSERT INTO b VALUES (?)', params: ['x'.repeat(500_000)] });
    expect(refused('query', { sql: 'SELECT group_concat(x) FROM b' })).toBe('too_large');
    expect(done('query', { sql: `SELECT unhex('00ff') AS x` })).toMatchObject({ rows: [{ x: 'AP8=' }] });
  });

  test('the limit applies to all statements of a schema together', () => {
    const product = 'INSERT INTO t SELECT 1 FROM t a, t b, t c, t d, t e, t f';
    const rows = Array.from({ length: 60 }, () => '(1)').join(', ');
    const first = ['CREATE TABLE t (a)', `INSERT INTO t VALUES ${rows}`];
    expect(open('sql', { schema: [...first, product] }).refused('query', { sql: 'SELECT 1' })).toBe('too_large');
    const many = Array.from({ length: 90 }, () => 'INSERT INTO t SELECT 1 FROM t a, t b WHERE a.a > b.a');
    expect(open('sql', { schema: [...first, ...many] }).refused('query', { sql: 'SELECT 1' })).toBe('too_large');
  });

  test('an error of the database is an outcome and changes nothing', () => {
    const { done, refused } = open('sql', { schema });
    expect(refused('query', { sql: 'SELECT nothing FROM nowhere' })).toBe('relic_error');
    expect(refused('execute', { sql: 'INSERT INTO t (id) VALUES (1), (1)' })).toBe('relic_error');
    expect(done('query', { sql: 'SELECT * FROM t' })).toMatchObject({ rows: [] });
  });

  test('the schema runs once', () => {
    const { done } = open('sql', { schema });
    done('query', { sql: 'SELECT 1' });
    expect(done('query', { sql: 'SELECT 2 AS n' })).toMatchObject({ rows: [{ n: 2 }] });
  });

  test.each([
    ['ATTACH DATABASE ? AS x'],
    ['PRAGMA writable_schema = 1'],
    ['BEGIN'],
    ['VACUUM'],
    ['CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END'],
    ['CREATE VIRTUAL TABLE x USING fts5(a)'],
    ['ALTER TABLE t RENAME TO c'],
    ['INSERT INTO t VALUES (1); DELETE FROM t'],
    ['INSERT INTO t VALUES (1); /* ; */ DELETE FROM t'],
    [`DELETE FROM 'Cortex_Relic_done'`],
    ['DELETE FROM t WHERE id = ?1'],
    ['DELETE FROM t WHERE id = ?'],
    ['WITH c AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM c) INSERT INTO t (id) SELECT x FROM c'],
    ['WITH RECURSIVE c(x) AS NOT MATERIALIZED (VALUES (1) UNION ALL SELECT x + 1 FROM "c") DELETE FROM t'],
    [`WITH 'c' AS (SELECT 1 AS ")" UNION ALL SELECT 2 FROM [c]) DELETE FROM t`],
    ['WITH "a""b"(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM [a"b]) DELETE FROM t'],
    ['WITH [a`b](n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM `a``b`) DELETE FROM t'],
    [''],
  ])('%s is refused', (sql) => {
    expect(readStatement(sql, undefined, 'execute')).toHaveProperty('issue');
  });

  test.each([
    [`INSERT INTO t (name) VALUES ('a;b''c--d')`],
    ['UPDATE t SET name = "x" WHERE id = 1;'],
    ['WITH c AS (SELECT 1 AS x) INSERT INTO t (id) SELECT x FROM c'],
    ['-- what for\nDELETE FROM t'],
    ['ALTER TABLE t RENAME COLUMN name TO title'],
    ['ALTER TABLE t ADD COLUMN more'],
  ])('%s is allowed', (sql) => {
    expect(readStatement(sql, undefined, 'execute')).toHaveProperty('sql');
  });
});

test('[R6] a change, its outcome and the schema are written together, whichever statement fails', () => {
  const prepare = () => {
    const failing = failingWrites(openNodeSql());
    return { ...failing, relics: new RelicStore({ sql: failing.sql, sizeBytes: () => 0, now: () => 1 }) };
  };
  const schema = ['CREATE TABLE t (n)', 'CREATE TABLE u (n)'];
  const relic = relicOf({ type: 'edge', store: 'sql', ttlMs: null, quotaBytes: 1_000_000, schema });
  const parameters = { sql: 'INSERT INTO t VALUES (1)' };
  const call = { space: 's', relic, endpoint: 'execute', parameters, key: 'k', owner: null };
  const failed = failEach(
    prepare,
    ({ relics }) => {
      const outcome = relics.call(call);
      if (!outcome.ok) throw new Error(outcome.error.message);
    },
    ({ sql, relics }) => {
      const tables = sql.exec(`SELECT name FROM sqlite_master WHERE name = 't'`);
      // The schema alone may be there: it is not applied again.
      return [tables.length === 0 ? 0 : sql.exec(`SELECT COUNT(*) AS n FROM t`)[0]?.['n'], relics.lookup('k')];
    },
  );
  expect(failed).toBeGreaterThan(4);
});
