/**
 * Checks a SQL statement before it runs (R6). SQLite in a Durable Object cannot be interrupted, so the maximum work of
 * a statement is computed from its words, its program and the sizes of the tables that it opens.
 */
import { limits } from '../domain/limits.ts';
import type { SqlDatabase, SqlValue } from '../domain/ports/storage.ts';
import { Cost } from './cost.ts';
import type { StoredBytes } from './cost.ts';
import type { TableSizes } from './counts.ts';
import { NotAdmitted, routinesOf } from './flow.ts';
import type { Instruction } from './flow.ts';
import { definitionIssue, shapeIssue, textsOf } from './shape.ts';
import type { Token } from './shape.ts';
import { OWN_TABLES, tokensOf } from './sql.ts';

export interface StatementToCheck {
  readonly sql: string;
  readonly values: readonly SqlValue[];
  readonly kind: string;
  readonly tokens: readonly Token[];
}

/** Why a statement must not run. */
export interface Refusal {
  readonly code: 'invalid_parameters' | 'too_large';
  readonly message: string;
}

/** A table, index or view of the database. */
interface SchemaObject {
  readonly type: string;
  readonly name: string;
  readonly table: string;
  readonly page: number;
  readonly sql: string;
}

const DEFINES: ReadonlySet<string> = new Set(['CREATE', 'ALTER']);
/** Functions whose results depend on texts that may be in a view, a constraint or a default. */
const BY_TEXT = /^(?:like|glob|replace|printf|format)\(/;

/** @returns the maximum work of the statement, or why it must not run */
export function checkStatement(
  sql: SqlDatabase,
  statement: StatementToCheck,
  databaseBytes: number,
): { readonly work: number } | Refusal {
  const schema = schemaOf(sql);
  const views = viewsOf(statement.tokens, schema);
  const chars = schema.reduce(
    (sum, object) => sum + object.sql.length,
    DEFINES.has(statement.kind) ? statement.sql.length : 0,
  );
  if (DEFINES.has(statement.kind) && (schema.length >= limits.relicSchemaObjects || chars > limits.relicSchemaChars)) {
    return {
      code: 'too_large',
      message: `the store may have ${limits.relicSchemaObjects} tables, indexes and views, with definitions of ${limits.relicSchemaChars} characters in total`,
    };
  }
  const issue = shapeIssue(statement.tokens, views);
  if (issue !== null) return { code: 'too_large', message: issue };
  if (DEFINES.has(statement.kind)) {
    const tables = schema.filter(({ type }) => type === 'table').map((table) => tokensOf(table.sql));
    const wrong = definitionIssue(statement.tokens, tables);
    if (wrong !== null) return { code: 'invalid_parameters', message: wrong };
  }
  const program = sql
    .exec(`EXPLAIN ${statement.sql}`, ...statement.values)
    .map(({ opcode, p1, p2, p3, p4, p5 }): Instruction => {
      return { opcode: String(opcode), p1: Number(p1), p2: Number(p2), p3: Number(p3), p4: String(p4), p5: Number(p5) };
    });
  const hidden = views.size > 0 || program.some(({ p4 }) => BY_TEXT.test(p4));
  const others = hidden ? schema.map((object) => views.get(object.name.toUpperCase()) ?? tokensOf(object.sql)) : [];
  const texts = textsOf(statement.tokens, others);
  const measured = new TableMeasurements(sql, schema);
  try {
    const base = chars * 10 + program.length * 100;
    const rough = { total: databaseBytes, longest: Math.min(databaseBytes, limits.relicSqliteValueBytes) };
    const options = {
      program,
      texts,
      databaseBytes,
      routines: routinesOf(program, limits.relicProgramInstructions),
      valueBytes: limits.relicSqliteValueBytes,
    };
    const rows = (page: number): number => measured.rows(page);
    const coarse = new Cost({ ...options, sizes: { rows, rowsPerKey: () => null }, stored: () => rough });
    const most = base + coarse.work(rough);
    if (most <= limits.relicStatementWork) return { work: most };
    // Measuring is expensive and rarely needed.
    const stored = (pages: readonly number[]): StoredBytes => measured.bytesOf(pages, databaseBytes);
    const work = base + new Cost({ ...options, sizes: measured, stored }).work(stored(coarse.pages));
    if (work <= limits.relicStatementWork) return { work };
    return {
      code: 'too_large',
      message: `the statement could need ${times(work / limits.relicStatementWork)} the allowed work, by its nested loops and the bytes of its values; restrict it, join by an index, or split it`,
    };
  } catch (error) {
    if (error instanceof NotAdmitted) return { code: 'invalid_parameters', message: error.message };
    throw error;
  }
}

function times(factor: number): string {
  return Number.isFinite(factor) && factor < 1e9 ? `${factor.toPrecision(2)} times` : 'many times';
}

/** The views that a statement names, and those that they name. */
function viewsOf(tokens: readonly Token[], schema: readonly SchemaObject[]): ReadonlyMap<string, readonly Token[]> {
  const all = new Map(schema.filter(({ type }) => type === 'view').map((view) => [view.name.toUpperCase(), view.sql]));
  const named = new Map<string, readonly Token[]>();
  const waiting = [tokens];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    for (const { word } of next) {
      const text = named.has(word) ? undefined : all.get(word);
      if (text === undefined) continue;
      const view = tokensOf(text);
      named.set(word, view);
      waiting.push(view);
    }
  }
  return named;
}

/** All objects except those of the store itself and of the platform. */
function schemaOf(sql: SqlDatabase): SchemaObject[] {
  return sql
    .exec(
      `SELECT type, name, tbl_name, rootpage, coalesce(sql, '') AS sql FROM sqlite_master
       WHERE tbl_name NOT LIKE '\\_cf\\_%' ESCAPE '\\' AND substr(tbl_name, 1, ?) <> ?`,
      OWN_TABLES.length,
      OWN_TABLES,
    )
    .map((row) => ({
      type: String(row['type']),
      name: String(row['name']),
      table: String(row['tbl_name']),
      page: Number(row['rootpage']),
      sql: String(row['sql']),
    }));
}

/** Sizes of tables, measured on demand. */
class TableMeasurements implements TableSizes {
  readonly #sql: SqlDatabase;
  readonly #schema: readonly SchemaObject[];
  readonly #rows = new Map<string, number>();
  readonly #keys = new Map<string, number | null>();
  readonly #bytes = new Map<string, StoredBytes>();
  #rowsLeft: number = limits.relicCountedRows;
  #valuesLeft: number = limits.relicMeasuredValues;

  constructor(sql: SqlDatabase, schema: readonly SchemaObject[]) {
    this.#sql = sql;
    this.#schema = schema;
  }

  rows(page: number): number {
    // The schema table, including the objects of the store and the platform; SQLite's own tables have a row for each.
    const object = this.#at(page);
    if (object === null) return this.#schema.length + 20;
    const known = this.#rows.get(object.table);
    if (known !== undefined) return known;
    const most = this.#rowsLeft;
    const [row] = this.#sql.exec(`SELECT count(*) AS n FROM (SELECT 1 FROM ${quoted(object.table)} LIMIT ${most + 1})`);
    const counted = Number(row?.['n']);
    const rows = counted > most ? Infinity : counted;
    this.#rowsLeft = Math.max(0, most - counted);
    this.#rows.set(object.table, rows);
    return rows;
  }

  rowsPerKey(page: number, columns: number): number | null {
    const key = `${page}:${columns}`;
    const known = this.#keys.get(key);
    if (known !== undefined) return known;
    const rows = this.#measuredKey(page, columns);
    this.#keys.set(key, rows);
    return rows;
  }

  #measuredKey(page: number, columns: number): number | null {
    const object = this.#at(page);
    if (object?.type !== 'index' || !this.#mayRead(this.rows(page) * columns)) return null;
    const keys = this.#sql
      .exec(`SELECT name, coll FROM pragma_index_xinfo(?) WHERE key = 1 ORDER BY seqno LIMIT ?`, object.name, columns)
      .map(({ name, coll }) => (typeof name === 'string' ? `${quoted(name)} COLLATE ${quoted(String(coll))}` : null));
    if (keys.length < columns || keys.includes(null)) return null;
    const [row] = this.#sql.exec(
      `SELECT max(n) AS n FROM (SELECT count(*) AS n FROM ${quoted(object.table)} GROUP BY ${keys.join(', ')})`,
    );
    return Number(row?.['n'] ?? 0);
  }

  /** Content of the tables with these root pages. */
  bytesOf(pages: readonly number[], databaseBytes: number): StoredBytes {
    const key = pages.join();
    const known = this.#bytes.get(key) ?? this.#measuredBytes(pages, databaseBytes);
    this.#bytes.set(key, known);
    return known;
  }

  #measuredBytes(pages: readonly number[], databaseBytes: number): StoredBytes {
    const tables = new Set(pages.flatMap((page) => this.#at(page)?.table ?? []));
    const most = Math.min(databaseBytes, limits.relicSqliteValueBytes);
    let total = 0;
    const definitions = pages.includes(1) ? this.#schema.map((object) => object.sql.length * 3) : [];
    let longest = Math.max(0, ...definitions);
    for (const table of tables) {
      const object = this.#schema.find(({ type, name }) => type === 'table' && name === table);
      const rows = object === undefined ? Infinity : this.rows(object.page);
      const names = this.#sql
        .exec(`SELECT name FROM pragma_table_xinfo(?)`, table)
        .map(({ name }) => `coalesce(octet_length(${quoted(String(name))}), 0)`);
      if (!this.#mayRead(rows * names.length)) return { total: databaseBytes, longest: most };
      const widest = names.length > 1 ? `max(${names.join(', ')})` : names.join('');
      const [row] = this.#sql.exec(
        `SELECT max(${widest}) AS longest, sum(${names.join(' + ')}) AS total FROM ${quoted(table)}`,
      );
      total += Number(row?.['total'] ?? 0);
      longest = Math.max(longest, Number(row?.['longest'] ?? 0));
    }
    total += definitions.reduce((sum, bytes) => sum + bytes, 0);
    return { total, longest: Math.min(longest, limits.relicSqliteValueBytes) };
  }

  /** Charges the measuring budget; what is not measured counts as the worst case. */
  #mayRead(values: number): boolean {
    if (!(values <= this.#valuesLeft)) return false;
    this.#valuesLeft -= values;
    return true;
  }

  #at(page: number): SchemaObject | null {
    return this.#schema.find((object) => object.page === page) ?? null;
  }
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
