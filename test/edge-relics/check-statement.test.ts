/** The SQL that an edge relic accepts, by its maximum work (R6). */
import { describe, expect, test } from 'vitest';
import { messageOf } from '../../src/domain/errors.ts';
import type { Json } from '../../src/domain/json.ts';
import { limits } from '../../src/domain/limits.ts';
import { checkStatement } from '../../src/edge-relics/check-statement.ts';
import { readStatement } from '../../src/edge-relics/sql.ts';
import { openNodeSql } from '../support/node-sql.ts';

/** A store of the maximum size that its quota allows: numbers, texts, long texts and documents. */
function filled() {
  const sql = openNodeSql();
  for (const statement of [
    'CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, amount INTEGER, status TEXT)',
    'CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT UNIQUE, city TEXT COLLATE NOCASE)',
    'CREATE TABLE long (id INTEGER PRIMARY KEY, body TEXT)',
    'CREATE TABLE documents (id INTEGER PRIMARY KEY, doc TEXT)',
    'CREATE TABLE same (id INTEGER PRIMARY KEY, k INTEGER)',
    'CREATE TABLE few (n INTEGER)',
    `WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM c WHERE x < 30000)
     INSERT INTO orders SELECT x, x % 2000, (x * 7919) % 30000, 'state' || x % 5 FROM c`,
    `WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM c WHERE x < 2000)
     INSERT INTO customers SELECT x, 'customer ' || x, 'city ' || x % 100 FROM c`,
    `WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM c WHERE x < 12)
     INSERT INTO long SELECT x, replace(hex(zeroblob(250000)), '0', 'a') FROM c`,
    `WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM c WHERE x < 2000)
     INSERT INTO documents SELECT x, json_object('id', x, 'tags', json_array('a', 'b', x)) FROM c`,
    'INSERT INTO same (k) SELECT 1 FROM orders LIMIT 3000',
    'INSERT INTO few VALUES (1), (2), (3)',
    'CREATE INDEX by_customer ON orders (customer)',
    'CREATE INDEX by_k ON same (k)',
    'CREATE VIEW totals AS SELECT customer, sum(amount) AS total FROM orders GROUP BY customer',
  ]) {
    sql.exec(statement);
  }
  return sql;
}

const store = filled();

function verdict(text: string, params?: Json): string {
  const endpoint = /^(?:SELECT|WITH|VALUES)/.test(text) ? 'query' : 'execute';
  const statement = readStatement(text, params, endpoint);
  if ('issue' in statement) return `invalid_parameters: ${statement.issue}`;
  const sql = endpoint === 'query' ? `SELECT * FROM (${statement.sql}\n) LIMIT 1001` : statement.sql;
  try {
    const checked = checkStatement(store, { ...statement, sql }, 10_000_000);
    return 'work' in checked ? 'runs' : `${checked.code}: ${checked.message}`;
  } catch (fault) {
    return `relic_error: ${messageOf(fault)}`;
  }
}

const many = JSON.stringify(Array.from({ length: 60_000 }, (_, n) => n));
const list = (length: number, item: (index: number) => string, separator = ','): string =>
  Array.from({ length }, (_, index) => item(index)).join(separator);
const long = 'x'.repeat(40_000);
const constants = `WITH c AS (VALUES ${list(10, (n) => `(${n})`)})`;

describe('[R6] a statement that could block the edge is refused before it runs', () => {
  test.each([
    ['a product of constant tables', `${constants} SELECT count(*) FROM ${list(8, (n) => `c c${n}`)}`],
    [
      'a product of chains of constants',
      `SELECT count(*) FROM ${list(4, (n) => `(SELECT 1 UNION ALL SELECT 2 UNION ALL VALUES ${list(60, (k) => `(${k})`)}) q${n}`)}`,
    ],
    ['a product of lists', 'SELECT count(*) FROM json_each(?) a, json_each(?) b', [many, many]],
    ['a constructed list', `SELECT count(*) FROM json_each('[' || replace(hex(zeroblob(500000)), '0', '1,') || '1]')`],
    [
      'a search for a long text in long texts',
      'SELECT count(*) FROM long WHERE instr(body, ?)',
      [`${'a'.repeat(250_000)}b`],
    ],
    ['the same with replace', 'SELECT count(*) FROM long WHERE replace(body, ?, 1) = 1', [`${'a'.repeat(250_000)}b`]],
    ['the same with trim', 'SELECT count(*) FROM long WHERE rtrim(body, ?) = 1', [`${'b'.repeat(250_000)}a`]],
    ['objects merged into each other', 'SELECT json_patch(?, ?)', [many, many]],
    [
      'a value that doubles',
      list(25, () => 'SELECT x || x AS x FROM (', '') + `SELECT 'abcdefgh' AS x` + ')'.repeat(25),
    ],
    ['repeated replace', `SELECT length(${'replace('.repeat(20)}'aaaa'${`, 'a', 'aaaa')`.repeat(20)}) FROM orders`],
    ['zeroblob', 'SELECT length(zeroblob(100000000))'],
    ['random bytes', 'SELECT hex(randomblob(1000000)) FROM orders'],
    ['a long parameter that is joined to each row', 'SELECT sum(length(? || status)) FROM orders', [long]],
    ['the same, collected', 'SELECT length(group_concat(? || status)) FROM orders', [long]],
    ['the same in hexadecimal', 'SELECT count(*) FROM orders WHERE hex(status || ?) = id', [long]],
    ['a long parameter that is sorted with each row', 'SELECT ? AS p, status FROM orders ORDER BY amount DESC', [long]],
    ['a long parameter that is written to each row', 'INSERT INTO few SELECT ? FROM orders', [long]],
    ['a wide number for each row', `SELECT sum(length(printf('%9999d', id))) FROM orders`],
    ['a width from a value', `SELECT printf('%*d', amount * 100000, 1) FROM orders`],
    ['a width in the text', `SELECT printf('%99999d', 1) FROM orders, few`],
    [
      'an alias with the name of a small table',
      'SELECT count(*) FROM orders AS few, orders AS fewer WHERE few.amount < fewer.amount',
    ],
    ['an index on one value', 'SELECT count(*) FROM same a JOIN same b ON a.k = b.k JOIN same c ON c.k = b.k'],
    [
      'a list of keys for each row',
      'SELECT count(*) FROM orders a, orders b WHERE b.id IN (SELECT amount FROM orders)',
    ],
    [
      'a subquery for each row',
      'SELECT (SELECT count(*) FROM orders b WHERE b.amount > a.amount) FROM orders a ORDER BY 1',
    ],
    [
      'a window frame that is recomputed',
      'SELECT max(amount) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 5 PRECEDING EXCLUDE CURRENT ROW) FROM orders',
    ],
    ['a text that grows in a window', 'SELECT group_concat(status) OVER (ORDER BY id) FROM orders'],
    [
      'nested names',
      `WITH v0 AS (SELECT 1 AS z)${list(30, (n) => `, v${n + 1} AS (SELECT 1 AS z FROM v${n} a, v${n} b)`, '')} SELECT 1 FROM v30`,
    ],
    [
      'nested columns',
      list(14, () => 'SELECT x + x + x AS x FROM (', '') + 'SELECT id AS x FROM orders' + ')'.repeat(14),
    ],
    [
      'an alias used very often',
      `SELECT max(${list(100, (n) => `amount + ${n}`)}) AS x FROM orders WHERE 1 IN (${list(5_000, () => 'x')})`,
    ],
    [
      'very many aggregates',
      `SELECT count(*) FROM orders GROUP BY amount HAVING count(*) IN (${list(1_900, (n) => `sum(id + ${n})`)})`,
    ],
    ['very many windows', `SELECT ${list(90, (n) => `sum(id) OVER (ORDER BY amount + ${n})`)} FROM orders`],
    ['a merge of all columns', `SELECT 1 FROM orders a ${list(10, (n) => `NATURAL JOIN orders a${n}`, ' ')}`],
    ['long values, repeated', 'SELECT a.body FROM long a, long b, few, few f'],
    [
      'recursion by another name',
      'WITH a AS (SELECT 1 AS x UNION ALL SELECT x FROM b), b AS (SELECT x FROM a) SELECT * FROM a',
    ],
    ['table-valued pragmas of SQLite', 'SELECT count(*) FROM pragma_table_list a, pragma_table_list b'],
    ['the statistics tables of SQLite', 'INSERT INTO sqlite_stat1 VALUES (1, 2, 3)'],
    ['a path for each of many values', 'SELECT max(fullkey) FROM json_tree(?)', [many]],
    ['the whole document for each of many values', 'SELECT max(json) FROM json_each(?)', [many]],
    ['a write of a product', 'INSERT INTO few SELECT 1 FROM orders a, orders b'],
    ['an update from a product', 'UPDATE orders SET amount = b.amount FROM orders b WHERE b.status = orders.status'],
    [
      'generated columns that use each other',
      `CREATE TABLE g (a, ${list(20, (n) => `g${n} AS (${n === 0 ? 'a || a' : `g${n - 1} || g${n - 1}`})`)})`,
    ],
    ['a foreign key with an action', 'CREATE TABLE child (id, p REFERENCES customers (id) ON DELETE CASCADE)'],
    ['very many brackets', `SELECT ${'('.repeat(500)}1${')'.repeat(500)}`],
  ])('%s', (_what, sql, params?: Json) => {
    expect(verdict(sql, params)).toMatch(/^(?:too_large|invalid_parameters|relic_error: circular reference)/);
  });

  test('a view of views counts with the length of its expansion', () => {
    const sql = filled();
    sql.exec('CREATE VIEW v0 AS SELECT id FROM few a, few b');
    for (let n = 1; n < 9; n += 1) sql.exec(`CREATE VIEW v${n} AS SELECT 1 AS one FROM v${n - 1} a, v${n - 1} b`);
    const statement = readStatement('SELECT 1 FROM v8', undefined, 'query');
    if ('issue' in statement) throw new Error(statement.issue);
    expect(checkStatement(sql, statement, 10_000_000)).toMatchObject({ code: 'too_large' });
  });
});

describe('[R6] common statements run', () => {
  test.each([
    ['SELECT count(*), sum(amount), avg(amount), max(status) FROM orders WHERE amount > 100'],
    ['SELECT status, count(*) AS n FROM orders GROUP BY status HAVING count(*) > 2 ORDER BY n DESC'],
    ['SELECT * FROM orders ORDER BY amount DESC LIMIT 20 OFFSET 40'],
    ['SELECT o.id, c.name FROM orders o JOIN customers c ON c.id = o.customer WHERE o.amount < 50'],
    ['SELECT c.name, sum(o.amount) FROM customers c LEFT JOIN orders o ON o.customer = c.id GROUP BY c.id'],
    ['SELECT c.id FROM customers c LEFT JOIN orders o ON o.customer = c.id WHERE o.id IS NULL'],
    ['SELECT name FROM customers WHERE id IN (SELECT customer FROM orders WHERE amount > 29000)'],
    ['SELECT name FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id AND o.amount > 100)'],
    ['SELECT name, (SELECT count(*) FROM orders o WHERE o.customer = c.id) AS n FROM customers c'],
    [`SELECT * FROM customers WHERE name LIKE '%tomer 1%' OR city = 'CITY 5'`],
    [`SELECT upper(name) || ', ' || city, replace(name, ' ', '_'), substr(city, 1, 3) FROM customers`],
    [`SELECT doc ->> '$.id', json_extract(doc, '$.tags[2]') FROM documents WHERE json_extract(doc, '$.id') > 100`],
    ['SELECT d.id, t.value FROM documents d, json_each(d.doc, :path) t', { path: '$.tags' }],
    ['SELECT value FROM json_each(?)', ['[1,2,3]']],
    [`SELECT ? || status FROM orders WHERE status = ? OR status LIKE '%e1'`, ['x'.repeat(200), 'x'.repeat(200)]],
    ['UPDATE documents SET doc = ? WHERE id = ?', [long, 1]],
    ['SELECT * FROM orders WHERE id IN (SELECT value FROM json_each(?))', ['[1,2,3]']],
    ['SELECT status, group_concat(DISTINCT customer) FROM orders WHERE amount < 3000 GROUP BY status'],
    ['SELECT json_group_array(name) FROM customers'],
    ['WITH big AS (SELECT * FROM orders WHERE amount > 20000) SELECT status, count(*) FROM big GROUP BY status'],
    ['SELECT id, row_number() OVER (PARTITION BY city ORDER BY name) AS r FROM customers LIMIT 20'],
    ['SELECT id, sum(id) OVER (ORDER BY name) AS running, lag(name) OVER (ORDER BY name) FROM customers'],
    ['SELECT c.name, t.total FROM totals t JOIN customers c ON c.id = t.customer ORDER BY t.total DESC LIMIT 5'],
    ['SELECT customer FROM orders UNION SELECT id FROM customers ORDER BY 1'],
    ['SELECT id FROM customers EXCEPT SELECT customer FROM orders'],
    [`SELECT strftime('%Y-%m', id * 86400, 'unixepoch') AS month, count(*) FROM orders GROUP BY month`],
    [`SELECT printf('%5.2f', amount / 3.0), date('now') FROM orders LIMIT 100`],
    [
      'SELECT CASE WHEN amount > 5 THEN 1 ELSE 0 END, coalesce(status, 0), abs(amount), round(amount / 3.0, 2) FROM orders',
    ],
    [`SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`],
    ['SELECT body FROM long WHERE id = ?', [1]],
    ['SELECT length(body), substr(body, 1, 100) FROM long'],
    ['VALUES (1, 2), (3, 4)'],
    ['INSERT INTO orders (customer, amount) VALUES (?, ?), (3, 4) RETURNING id', [1, 2]],
    [`INSERT INTO customers (id, name) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET name = excluded.name || '+'`],
    ['INSERT INTO few SELECT value FROM json_each(?)', [JSON.stringify(Array.from({ length: 20_000 }, (_, n) => n))]],
    [`INSERT INTO customers (name) VALUES ${list(1_200, (n) => `('new ${n}')`)}`],
    ['REPLACE INTO customers (id, name) VALUES (1, 2)'],
    ['UPDATE orders SET amount = amount + 1 WHERE customer = 7'],
    ['UPDATE orders SET amount = 0'],
    ['UPDATE orders SET status = c.city FROM customers c WHERE c.id = orders.customer AND orders.amount < 5'],
    ['DELETE FROM orders WHERE id IN (SELECT id FROM orders ORDER BY id LIMIT 100)'],
    ['DELETE FROM orders'],
    [
      'CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, a TEXT NOT NULL DEFAULT (date()), b INT CHECK (b > 0), c AS (a || b))',
    ],
    ['CREATE TABLE t (id INTEGER PRIMARY KEY, c REFERENCES customers (id))'],
    ['CREATE INDEX by_amount ON orders (amount)'],
    ['CREATE UNIQUE INDEX one ON customers (lower(name)) WHERE city IS NOT NULL'],
    ['CREATE VIEW v AS SELECT * FROM orders WHERE amount > 5'],
    ['ALTER TABLE orders ADD COLUMN note TEXT'],
    ['ALTER TABLE customers RENAME COLUMN city TO town'],
    ['ALTER TABLE customers DROP COLUMN city'],
    ['DROP TABLE orders'],
    ['DROP INDEX by_customer'],
  ])('%s', (sql, params?: Json) => {
    expect(verdict(sql, params)).toBe('runs');
  });
});

test('[R6] the number of tables, indexes and views in a store is limited', () => {
  const sql = openNodeSql();
  for (let n = 0; n < limits.relicSchemaObjects; n += 1) sql.exec(`CREATE TABLE t${n} (a)`);
  const statement = readStatement('CREATE TABLE more (a)', undefined, 'execute');
  if ('issue' in statement) throw new Error(statement.issue);
  expect(checkStatement(sql, statement, 1_000_000)).toMatchObject({ code: 'too_large' });
});
