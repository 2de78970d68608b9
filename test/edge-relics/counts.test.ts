/** Upper bounds for the instructions of a statement, compared with real results (R6). */
import { describe, expect, test } from 'vitest';
import { Counts } from '../../src/edge-relics/counts.ts';
import { NotAdmitted, routinesOf } from '../../src/edge-relics/flow.ts';
import type { Instruction } from '../../src/edge-relics/flow.ts';
import { openNodeSql } from '../support/node-sql.ts';

const ROWS = 40;

function database() {
  const sql = openNodeSql();
  for (const statement of [
    'CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b TEXT)',
    'CREATE TABLE u (id INTEGER PRIMARY KEY, a INTEGER)',
    'CREATE INDEX ta ON t (a)',
    `WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM c WHERE x < ${ROWS})
     INSERT INTO t SELECT x, x % 4, 'b' || x % 3 FROM c`,
    'INSERT INTO u SELECT id, a FROM t WHERE id % 2 = 0',
  ]) {
    sql.exec(statement);
  }
  return sql;
}

const sql = database();

function countsOf(text: string) {
  const program = sql.exec(`EXPLAIN ${text}`).map((row): Instruction => {
    const [p1, p2, p3, p5] = ['p1', 'p2', 'p3', 'p5'].map((name) => Number(row[name]));
    return { opcode: String(row['opcode']), p1: p1 ?? 0, p2: p2 ?? 0, p3: p3 ?? 0, p4: String(row['p4']), p5: p5 ?? 0 };
  });
  const counts = new Counts({
    program,
    routines: routinesOf(program, 10_000),
    sizes: { rows: () => ROWS, rowsPerKey: () => ROWS / 4 },
    elements: { each: 10, total: Infinity },
  });
  const all = program.reduce((sum, { opcode }, at) => (opcode === 'ResultRow' ? sum + counts.of(at) : sum), 0);
  return { all, of: (opcode: string) => program.flatMap((one, at) => (one.opcode === opcode ? [counts.of(at)] : [])) };
}

describe('[R6] the estimated number of rows is at least the real one, and not far above it', () => {
  test.each([
    ['SELECT * FROM t', 2],
    ['SELECT * FROM t, u', 3],
    ['SELECT * FROM t JOIN u ON u.a = t.a', 8],
    ['SELECT * FROM t LEFT JOIN u ON u.a = t.id', 50],
    ['SELECT * FROM t LEFT JOIN u ON u.id = t.id LEFT JOIN u v ON v.id = u.id', 10],
    ['SELECT * FROM t FULL JOIN u ON u.a = t.a', 200],
    ['SELECT * FROM u RIGHT JOIN t ON t.a = u.a AND t.id > u.id', 500],
    ['SELECT * FROM t WHERE id IN (SELECT a FROM u) OR a IN (1, 2) OR b = ?', 50],
    ['SELECT a, count(*) FROM t GROUP BY a ORDER BY 2', 20],
    ['SELECT a FROM t UNION SELECT id FROM u ORDER BY 1', 20],
    ['SELECT a FROM t INTERSECT SELECT id FROM u', 100],
    ['SELECT a FROM t EXCEPT SELECT id FROM u ORDER BY 1', 100],
    ['SELECT sum(id) OVER (PARTITION BY a ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM t', 100],
    ['SELECT lag(id, 2) OVER (ORDER BY b), ntile(3) OVER (PARTITION BY a ORDER BY id) FROM t', 50],
    ['SELECT * FROM (VALUES (1), (2), (3)) a, (VALUES (1), (2)) b', 4],
    ['WITH c AS MATERIALIZED (SELECT * FROM t) SELECT * FROM c x JOIN c y ON x.id = y.id', 50],
    [`SELECT value FROM json_each('[1,2,3,4,5,6,7,8,9,0]')`, 2],
    ['DELETE FROM t WHERE a = 1 RETURNING id', 10],
  ])('%s', (text, most) => {
    const rows = database().exec(text).length;
    const { all } = countsOf(text);
    expect(all).toBeGreaterThanOrEqual(rows);
    expect(all).toBeLessThanOrEqual((rows + 1) * most);
  });
});

test('[R6] LIMIT and Once limit the instructions after them', () => {
  expect(countsOf('SELECT a, b FROM t LIMIT 3').of('ResultRow')[0]).toBeLessThanOrEqual(4);
  const { of } = countsOf('SELECT (SELECT max(id) FROM u) FROM t');
  expect(Math.max(...of('AggStep'))).toBeLessThanOrEqual(ROWS + 1);
});

test('[R6] recursion has no upper bound', () => {
  const endless = 'WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM c) SELECT x FROM c';
  expect(() => countsOf(endless)).toThrow(NotAdmitted);
});
