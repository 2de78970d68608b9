/**
 * An edge relic's store: keys and values, a log, or a SQL database, in the SQLite of one object (R6).
 *
 * Owns what is stored, when it is forgotten, and what recent calls have done. Does not own who may call,
 * nor the alarm that has expired entries removed.
 *
 * Invariants:
 *  1. A call that changes something and the memory of its outcome reach the database together: asked
 *     again with the same key, it is answered as it was and nothing changes twice.
 *  2. A call that fails changes nothing.
 *  3. What has expired is never shown, whether it has been removed or not.
 *  4. What is stored does not grow past the quota; what shrinks it is always possible.
 */
import type { ActionOutcome } from '../domain/action.ts';
import { messageOf } from '../domain/errors.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { EdgeRelicCall, SqlDatabase, SqlRow, SqlValue } from '../domain/ports.ts';
import { isNested, stepsOf } from './relic-plan.ts';
import { OWN_TABLES, readStatement } from './relic-sql.ts';

export interface RelicStoreOptions {
  readonly sql: SqlDatabase;
  /** How much the database takes, in bytes. */
  readonly sizeBytes: () => number;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

const KV = `${OWN_TABLES}kv`;
const LOG = `${OWN_TABLES}log`;
const DONE = `${OWN_TABLES}done`;
const SCHEMA = `${OWN_TABLES}schema`;
const CHANGING: ReadonlySet<string> = new Set(['set', 'delete', 'increment', 'append', 'execute']);
const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** The caller's mistake, or a full store: a failed outcome. */
class RelicFault extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** Undoes what a reading statement may have written. */
class Undo extends Error {}

export class RelicStore {
  readonly #sql: SqlDatabase;
  readonly #sizeBytes: () => number;
  readonly #now: () => number;

  constructor({ sql, sizeBytes, now }: RelicStoreOptions) {
    this.#sql = sql;
    this.#sizeBytes = sizeBytes;
    this.#now = now;
    for (const statement of [
      `CREATE TABLE IF NOT EXISTS ${KV} (key TEXT PRIMARY KEY, value TEXT NOT NULL, version INTEGER NOT NULL,
       updated_at INTEGER NOT NULL, expires_at INTEGER)`,
      `CREATE TABLE IF NOT EXISTS ${LOG} (number INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL,
       entry TEXT NOT NULL, expires_at INTEGER)`,
      `CREATE TABLE IF NOT EXISTS ${DONE} (number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT UNIQUE NOT NULL,
       output TEXT NOT NULL)`,
      `CREATE TABLE IF NOT EXISTS ${SCHEMA} (applied INTEGER NOT NULL)`,
      `CREATE INDEX IF NOT EXISTS ${KV}_expiry ON ${KV} (expires_at) WHERE expires_at IS NOT NULL`,
      `CREATE INDEX IF NOT EXISTS ${LOG}_expiry ON ${LOG} (expires_at) WHERE expires_at IS NOT NULL`,
    ]) {
      sql.exec(statement);
    }
  }

  /** Does one call. What is wrong with it is an outcome; nothing is thrown. */
  call(call: EdgeRelicCall): ActionOutcome {
    try {
      this.#applySchema(call);
      if (!CHANGING.has(call.endpoint)) return { ok: true, output: this.#read(call) };
      const known = this.lookup(call.key);
      if (known !== null) return known;
      const output = this.#sql.transaction(() => {
        const before = this.#sizeBytes();
        const done = this.#change(call);
        this.#remember(call.key, done);
        this.#checkQuota(call, before);
        return done;
      });
      return { ok: true, output };
    } catch (fault) {
      const code = fault instanceof RelicFault ? fault.code : 'relic_error';
      return { ok: false, error: { code, message: `${call.relic.name}: ${messageOf(fault)}`, retryable: false } };
    }
  }

  /** What a call with this key has done; null when it has changed nothing. */
  lookup(key: string): ActionOutcome | null {
    const [row] = this.#sql.exec(`SELECT output FROM ${DONE} WHERE key = ?`, key);
    return row === undefined ? null : { ok: true, output: parse(row['output']) };
  }

  /** Removes what has expired. */
  purge(): void {
    for (const table of [KV, LOG]) this.#sql.exec(`DELETE FROM ${table} WHERE expires_at <= ?`, this.#now());
  }

  /** When the next entry expires, epoch milliseconds; null when none does. */
  nextExpiry(): number | null {
    const times = [KV, LOG].flatMap((table) => {
      const at = this.#sql.exec(`SELECT min(expires_at) AS at FROM ${table} WHERE expires_at IS NOT NULL`)[0]?.['at'];
      return typeof at === 'number' ? [at] : [];
    });
    return times.length === 0 ? null : Math.min(...times);
  }

  #read({ endpoint, parameters }: EdgeRelicCall): Json {
    switch (endpoint) {
      case 'get': {
        const row = this.#entry(text(parameters['key']));
        return row === null ? (parameters['default'] ?? null) : parse(row['value']);
      }
      case 'list':
        return this.#list(parameters);
      case 'tail':
        return this.#entries(parameters, 'DESC').toReversed();
      case 'range': {
        const entries = this.#entries(parameters, 'ASC');
        const full = entries.length === pageOf(parameters);
        return { entries, next: full ? (entries.at(-1)?.['number'] ?? null) : null };
      }
      case 'query':
        return this.#query(parameters);
      default:
        throw new RelicFault('unknown_endpoint', `there is no endpoint "${endpoint}"`);
    }
  }

  #change(call: EdgeRelicCall): Json {
    const { endpoint, parameters } = call;
    switch (endpoint) {
      case 'set': {
        const key = text(parameters['key']);
        const version = Number(this.#entry(key)?.['version'] ?? 0);
        const wanted = parameters['if_version'];
        if (wanted !== undefined && wanted !== version) {
          throw new RelicFault('relic_conflict', `"${key}" has version ${version}, not ${JSON.stringify(wanted)}`);
        }
        this.#put(call, key, parameters['value'] ?? null, version + 1);
        return { key, version: version + 1 };
      }
      case 'delete': {
        const key = text(parameters['key']);
        const deleted = this.#entry(key) !== null;
        this.#sql.exec(`DELETE FROM ${KV} WHERE key = ?`, key);
        return { key, deleted };
      }
      case 'increment': {
        const key = text(parameters['key']);
        const row = this.#entry(key);
        const before = row === null ? 0 : parse(row['value']);
        if (typeof before !== 'number') throw new RelicFault('relic_error', `"${key}" does not hold a number`);
        const sum = before + Number(parameters['by'] ?? 1);
        if (!Number.isFinite(sum)) throw new RelicFault('relic_error', `"${key}" would be no number any more`);
        this.#put(call, key, sum, Number(row?.['version'] ?? 0) + 1);
        return sum;
      }
      case 'append': {
        const [row] = this.#sql.exec(
          `INSERT INTO ${LOG} (at, entry, expires_at) VALUES (?, ?, ?) RETURNING number`,
          this.#now(),
          written(parameters['entry'] ?? null),
          this.#expiry(call),
        );
        return { number: Number(row?.['number'] ?? 0) };
      }
      default:
        return this.#execute(parameters);
    }
  }

  #entry(key: string): SqlRow | null {
    const [row] = this.#sql.exec(
      `SELECT value, version FROM ${KV} WHERE key = ? AND (expires_at IS NULL OR expires_at > ?)`,
      key,
      this.#now(),
    );
    return row ?? null;
  }

  #put(call: EdgeRelicCall, key: string, value: Json, version: number): void {
    this.#sql.exec(
      `INSERT OR REPLACE INTO ${KV} (key, value, version, updated_at, expires_at) VALUES (?, ?, ?, ?, ?)`,
      key,
      written(value),
      version,
      this.#now(),
      this.#expiry(call),
    );
  }

  #expiry({ parameters: { ttl }, relic: { implementation } }: EdgeRelicCall): number | null {
    const ms = typeof ttl === 'number' ? ttl * 1_000 : implementation.type === 'edge' ? implementation.ttlMs : null;
    return ms === null ? null : Math.ceil(this.#now() + Math.min(ms, limits.relicTtlMs));
  }

  #list({ prefix = '', after = '', values = true, ...rest }: JsonObject): Json {
    const limit = pageOf(rest);
    const rows = this.#sql.exec(
      `SELECT key, value, version, updated_at FROM ${KV}
       WHERE key > ?1 AND substr(key, 1, length(?2)) = ?2 AND (expires_at IS NULL OR expires_at > ?3)
       ORDER BY key LIMIT ?4`,
      text(after),
      text(prefix),
      this.#now(),
      limit,
    );
    const next = rows.length === limit ? text(rows.at(-1)?.['key']) : null;
    if (values === false) return { keys: rows.map(({ key }) => text(key)), next };
    const entries = withinAnswer(
      rows.map(({ key, value, version, updated_at: at }) => ({
        key: text(key),
        value: parse(value),
        version: Number(version),
        updated_at: new Date(Number(at)).toISOString(),
      })),
    );
    return { entries, next: entries.length < rows.length ? (entries.at(-1)?.key ?? null) : next };
  }

  #entries(parameters: JsonObject, order: 'ASC' | 'DESC'): JsonObject[] {
    const { after = 0, filter = '' } = parameters;
    const rows = this.#sql.exec(
      `SELECT number, at, entry FROM ${LOG}
       WHERE number > ?1 AND at >= ?2 AND at <= ?3 AND instr(entry, ?4) > 0 AND (expires_at IS NULL OR expires_at > ?5)
       ORDER BY number ${order} LIMIT ?6`,
      Number(after),
      this.#time(parameters['since'], 0),
      this.#time(parameters['until'], Number.MAX_SAFE_INTEGER),
      // As it stands in the JSON.
      JSON.stringify(text(filter)).slice(1, -1),
      this.#now(),
      pageOf(parameters),
    );
    return withinAnswer(
      rows.map(({ number, at, entry }) => ({
        number: Number(number),
        at: new Date(Number(at)).toISOString(),
        entry: parse(entry),
      })),
    );
  }

  #time(said: Json | undefined, otherwise: number): number {
    if (said === undefined) return otherwise;
    if (typeof said === 'number') return said;
    const [, amount, unit = ''] = /^(\d+(?:\.\d+)?)([smhd])$/.exec(text(said)) ?? [];
    const at = amount === undefined ? Date.parse(text(said)) : this.#now() - Number(amount) * (UNITS[unit] ?? 0);
    if (Number.isNaN(at)) throw new RelicFault('invalid_parameters', `"${text(said)}" is no time`);
    return Math.round(at);
  }

  #query({ sql, params }: JsonObject): Json {
    const statement = readStatement(text(sql), params, 'query');
    if ('fault' in statement) throw new RelicFault('invalid_parameters', statement.fault);
    const found: { rows: SqlRow[] } = { rows: [] };
    try {
      this.#sql.transaction(() => {
        const limited = `SELECT * FROM (${statement.sql}\n) LIMIT ${limits.relicPageRows + 1}`;
        this.#checkSteps(limited, statement.values);
        found.rows = this.#sql.exec(limited, ...statement.values);
        throw new Undo();
      });
    } catch (fault) {
      if (!(fault instanceof Undo)) throw fault;
    }
    return answerOf(found.rows);
  }

  #execute({ sql, params }: JsonObject): Json {
    const statement = readStatement(text(sql), params, 'execute');
    if ('fault' in statement) throw new RelicFault('invalid_parameters', statement.fault);
    this.#checkSteps(statement.sql, statement.values);
    const rows = this.#sql.exec(statement.sql, ...statement.values);
    if (['CREATE', 'DROP', 'ALTER'].includes(statement.kind)) return { changes: 0 };
    const changes = Number(this.#sql.exec(`SELECT changes() AS changes`)[0]?.['changes'] ?? 0);
    return rows.length === 0 ? { changes } : { changes, ...answerOf(rows) };
  }

  /** @throws RelicFault for a statement that would run for too long: nothing could end it */
  #checkSteps(sql: string, values: readonly SqlValue[]): void {
    const plan = this.#sql.exec(`EXPLAIN QUERY PLAN ${sql}`, ...values);
    if (!isNested(plan)) return;
    const tables = this.#sql.exec(
      `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
       AND name NOT LIKE '\\_cf\\_%' ESCAPE '\\' AND substr(name, 1, ?) <> ?`,
      OWN_TABLES.length,
      OWN_TABLES,
    );
    const counts = new Map(
      tables.map(({ name }) => {
        const quoted = `"${String(name).replaceAll('"', '""')}"`;
        return [String(name).toLowerCase(), Number(this.#sql.exec(`SELECT count(*) AS n FROM ${quoted}`)[0]?.['n'])];
      }),
    );
    const texts = values.reduce<number>(
      (sum, value) => sum + (typeof value === 'string' ? value.length : 0),
      sql.length,
    );
    const steps = stepsOf(plan, {
      rowsOf: (name) =>
        counts.get(name.toLowerCase()) ?? counts.get(tableOf(name, sql, [...counts.keys()]) ?? '') ?? null,
      most: Math.max(0, ...counts.values()),
      inTexts: Math.ceil(texts / 2),
    });
    if (steps <= limits.relicStatementSteps) return;
    throw new RelicFault(
      'too_large',
      `the statement would go through about ${steps.toExponential(1)} rows, loop within loop (allowed: ${limits.relicStatementSteps}); narrow it, or join by an index`,
    );
  }

  /** Statements of the manifest that have not run yet, in order. */
  #applySchema({ relic: { implementation } }: EdgeRelicCall): void {
    if (implementation.type !== 'edge' || implementation.schema.length === 0) return;
    const applied = Number(this.#sql.exec(`SELECT max(applied) AS applied FROM ${SCHEMA}`)[0]?.['applied'] ?? 0);
    if (applied >= implementation.schema.length) return;
    this.#sql.transaction(() => {
      for (const [at, sql] of implementation.schema.entries()) {
        if (at < applied) continue;
        const statement = readStatement(sql, [], 'execute');
        if ('fault' in statement) throw new RelicFault('relic_error', `schema statement ${at + 1}: ${statement.fault}`);
        this.#sql.exec(statement.sql);
      }
      this.#sql.exec(`INSERT INTO ${SCHEMA} (applied) VALUES (?)`, implementation.schema.length);
    });
  }

  #remember(key: string, output: Json): void {
    const [row] = this.#sql.exec(
      `INSERT INTO ${DONE} (key, output) VALUES (?, ?) RETURNING number`,
      key,
      JSON.stringify(output),
    );
    this.#sql.exec(`DELETE FROM ${DONE} WHERE number <= ?`, Number(row?.['number'] ?? 0) - limits.relicRememberedCalls);
  }

  #checkQuota({ relic: { implementation } }: EdgeRelicCall, before: number): void {
    const quota = implementation.type === 'edge' ? implementation.quotaBytes : limits.relicQuotaBytes;
    const size = this.#sizeBytes();
    if (size <= before || size <= quota + limits.relicOwnBytes) return;
    throw new RelicFault('relic_full', `there is no room: it may hold ${quota} bytes`);
  }
}

/** The table that a statement calls by this name: `orders o`, `orders AS o`. */
function tableOf(alias: string, sql: string, tables: readonly string[]): string | null {
  if (!/^\w+$/.test(alias)) return null;
  const before = new RegExp(`\\b(\\w{1,128})["\`\\]]?\\s+(?:AS\\s+)?["\`[]?${alias}\\b`, 'gi');
  const named = [...sql.matchAll(before)].map(([, table = '']) => table.toLowerCase());
  return named.find((table) => tables.includes(table)) ?? null;
}

function pageOf({ limit }: JsonObject): number {
  return Math.min(typeof limit === 'number' ? limit : 100, limits.relicPageRows);
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? null);
}

function parse(value: SqlValue | undefined): Json {
  return JSON.parse(String(value)) as Json;
}

/** @throws RelicFault where a value is larger than an entry may be */
function written(value: Json): string {
  const json = JSON.stringify(value);
  const bytes = new TextEncoder().encode(json).length;
  if (bytes <= limits.relicValueBytes) return json;
  throw new RelicFault('too_large', `the value has ${bytes} bytes; at most ${limits.relicValueBytes} are allowed`);
}

/** As many as one answer may hold, at least one. */
function withinAnswer<T>(items: readonly T[]): T[] {
  let chars = 0;
  const rest = items.findIndex((item, at) => {
    chars += JSON.stringify(item).length;
    return at > 0 && chars > limits.relicAnswerChars;
  });
  return rest < 0 ? [...items] : items.slice(0, rest);
}

function answerOf(rows: readonly SqlRow[]): { rows: JsonObject[]; truncated: boolean } {
  const shown = withinAnswer(
    rows.slice(0, limits.relicPageRows).map((row) => Object.fromEntries(Object.entries(row).map(jsonColumn))),
  );
  return { rows: shown, truncated: shown.length < rows.length };
}

/** Bytes, which JSON has not, as base64. */
function jsonColumn([name, value]: [string, SqlValue | ArrayBuffer]): [string, Json] {
  if (value === null || typeof value === 'string') return [name, value];
  if (typeof value === 'number') return [name, Number.isFinite(value) ? value : null];
  const bytes = value instanceof Uint8Array ? value : new Uint8Array(value);
  return [name, btoa(Array.from(bytes, (byte) => String.fromCodePoint(byte)).join(''))];
}
