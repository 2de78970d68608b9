/**
 * An edge relic's store: keys and values, a log, or a SQL database, in the SQLite of one object (R6).
 *
 * Owns the stored data, its expiry, and the outcomes of recent calls. Does not own permissions, or the alarm that
 * removes expired entries.
 *
 * Invariants:
 *  1. The change of a call and the record of its outcome are written together: a repeated call with the same key gets
 *     the same answer and changes nothing.
 *  2. A call that fails changes nothing.
 *  3. Expired entries are never shown, whether they have been removed or not.
 *  4. The stored data does not grow beyond the quota; deleting is always possible.
 */
import type { ActionOutcome } from '../domain/action.ts';
import { messageOf } from '../domain/errors.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { EdgeRelicCall } from '../domain/ports/edge-relics.ts';
import type { SqlDatabase, SqlRow, SqlValue } from '../domain/ports/storage.ts';
import { WorkMeter } from '../domain/work.ts';
import { checkStatement } from './check-statement.ts';
import { keyPage, logPage } from './pages.ts';
import type { LogEntries } from './pages.ts';
import { OWN_TABLES, readStatement } from './sql.ts';
import type { Statement } from './sql.ts';

export interface RelicStoreOptions {
  readonly sql: SqlDatabase;
  /** Size of the database in bytes. */
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

/** An error of the caller, or a full store: a failed outcome. */
class RelicError extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** Rolls back what a read statement may have written. */
class Rollback extends Error {}

export class RelicStore {
  readonly #sql: SqlDatabase;
  readonly #sizeBytes: () => number;
  readonly #now: () => number;
  #meter = new WorkMeter(limits.relicCallSteps);

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

  /**
   * Executes one call. Errors are returned as outcomes; nothing is thrown.
   *
   * @param meter charged with the work of the call, at most `relicCallSteps`
   */
  call(call: EdgeRelicCall, meter = new WorkMeter(limits.relicCallSteps)): ActionOutcome {
    this.#meter = meter;
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
      const code = fault instanceof RelicError ? fault.code : 'relic_error';
      return { ok: false, error: { code, message: `${call.relic.name}: ${messageOf(fault)}`, retryable: false } };
    }
  }

  /** The outcome of the call with this key; null if it changed nothing. */
  lookup(key: string): ActionOutcome | null {
    const [row] = this.#sql.exec(`SELECT output FROM ${DONE} WHERE key = ?`, key);
    return row === undefined ? null : { ok: true, output: parse(row['output']) };
  }

  /** Removes expired entries, within the limit of one call; the next expiry is in the past while more are left. */
  purge(): void {
    for (const [table, key] of [
      [KV, 'key'],
      [LOG, 'number'],
    ] as const) {
      this.#sql.exec(
        `DELETE FROM ${table} WHERE ${key} IN (SELECT ${key} FROM ${table} WHERE expires_at <= ? LIMIT ?)`,
        this.#now(),
        limits.relicPurgedRows,
      );
    }
  }

  /** When the next entry expires, epoch milliseconds; null if none does. */
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
        return [...this.#entries(parameters, 'DESC').entries].toReversed();
      case 'range': {
        const { entries, next } = this.#entries(parameters, 'ASC');
        return { entries: [...entries], next };
      }
      case 'query':
        return this.#query(parameters);
      default:
        throw new RelicError('unknown_endpoint', `there is no endpoint "${endpoint}"`);
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
          throw new RelicError('relic_conflict', `"${key}" has version ${version}, not ${JSON.stringify(wanted)}`);
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
        if (typeof before !== 'number') throw new RelicError('relic_error', `the value of "${key}" is not a number`);
        const sum = before + Number(parameters['by'] ?? 1);
        if (!Number.isFinite(sum)) throw new RelicError('relic_error', `"${key}" would exceed the range of numbers`);
        this.#put(call, key, sum, Number(row?.['version'] ?? 0) + 1);
        return sum;
      }
      case 'append': {
        const [row] = this.#sql.exec(
          `INSERT INTO ${LOG} (at, entry, expires_at) VALUES (?, ?, ?) RETURNING number`,
          this.#now(),
          this.#encoded(parameters['entry'] ?? null),
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
      this.#encoded(value),
      version,
      this.#now(),
      this.#expiry(call),
    );
  }

  #expiry({ parameters: { ttl }, relic: { implementation } }: EdgeRelicCall): number | null {
    const ms = typeof ttl === 'number' ? ttl * 1_000 : implementation.type === 'edge' ? implementation.ttlMs : null;
    return ms === null ? null : Math.ceil(this.#now() + Math.min(ms, limits.relicTtlMs));
  }

  /** @throws RelicError if a value is too large for an entry */
  #encoded(value: Json): string {
    const json = JSON.stringify(value);
    this.#meter.chargeChars(json.length);
    const bytes = new TextEncoder().encode(json).length;
    if (bytes <= limits.relicValueBytes) return json;
    throw new RelicError('too_large', `the value has ${bytes} bytes; at most ${limits.relicValueBytes} are allowed`);
  }

  #list(parameters: JsonObject): Json {
    const { prefix = '', after = '', values = true } = parameters;
    return keyPage(this.#sql, this.#meter, {
      table: KV,
      prefix: text(prefix),
      after: text(after),
      values: values !== false,
      limit: pageOf(parameters),
      now: this.#now(),
    });
  }

  #entries(parameters: JsonObject, order: 'ASC' | 'DESC'): LogEntries {
    const { after = 0, filter = '' } = parameters;
    return logPage(this.#sql, this.#meter, {
      table: LOG,
      order,
      after: Number(after),
      since: this.#time(parameters['since'], 0),
      until: this.#time(parameters['until'], Number.MAX_SAFE_INTEGER),
      // As in JSON.
      filter: JSON.stringify(text(filter)).slice(1, -1),
      limit: pageOf(parameters),
      now: this.#now(),
    });
  }

  #time(written: Json | undefined, otherwise: number): number {
    if (written === undefined) return otherwise;
    if (typeof written === 'number') return written;
    const [, amount, unit = ''] = /^(\d+(?:\.\d+)?)([smhd])$/.exec(text(written)) ?? [];
    const at = amount === undefined ? Date.parse(text(written)) : this.#now() - Number(amount) * (UNITS[unit] ?? 0);
    if (Number.isNaN(at)) throw new RelicError('invalid_parameters', `"${text(written)}" is not a time`);
    return Math.round(at);
  }

  #query({ sql, params }: JsonObject): Json {
    const statement = readStatement(text(sql), params, 'query');
    if ('issue' in statement) throw new RelicError('invalid_parameters', statement.issue);
    const found: { rows: SqlRow[] } = { rows: [] };
    try {
      this.#sql.transaction(() => {
        const limited = `SELECT * FROM (${statement.sql}\n) LIMIT ${limits.relicPageRows + 1}`;
        this.#checkStatement({ ...statement, sql: limited });
        found.rows = this.#sql.exec(limited, ...statement.values);
        throw new Rollback();
      });
    } catch (fault) {
      if (!(fault instanceof Rollback)) throw fault;
    }
    return answerOf(found.rows);
  }

  #execute({ sql, params }: JsonObject): Json {
    const statement = readStatement(text(sql), params, 'execute');
    if ('issue' in statement) throw new RelicError('invalid_parameters', statement.issue);
    this.#checkStatement(statement);
    const rows = this.#sql.exec(statement.sql, ...statement.values);
    if (['CREATE', 'DROP', 'ALTER'].includes(statement.kind)) return { changes: 0 };
    const changes = Number(this.#sql.exec(`SELECT changes() AS changes`)[0]?.['changes'] ?? 0);
    return rows.length === 0 ? { changes } : { changes, ...answerOf(rows) };
  }

  /**
   * @returns its maximum work. @throws RelicError for a statement that must not run, because it could not be stopped
   */
  #checkStatement(statement: Statement): number {
    const checked = checkStatement(this.#sql, statement, this.#sizeBytes());
    this.#meter.charge('work' in checked ? checked.work / limits.relicWorkPerStep : limits.relicRefusalSteps);
    if ('work' in checked) return checked.work;
    throw new RelicError(checked.code, checked.message);
  }

  /** Runs the manifest's schema statements that have not run yet, in order. */
  #applySchema({ relic: { implementation } }: EdgeRelicCall): void {
    if (implementation.type !== 'edge' || implementation.schema.length === 0) return;
    const applied = Number(this.#sql.exec(`SELECT max(applied) AS applied FROM ${SCHEMA}`)[0]?.['applied'] ?? 0);
    if (applied >= implementation.schema.length) return;
    this.#sql.transaction(() => {
      let work = 0;
      for (const [at, sql] of implementation.schema.entries()) {
        if (at < applied) continue;
        const statement = readStatement(sql, [], 'execute');
        if ('issue' in statement) throw new RelicError('relic_error', `schema statement ${at + 1}: ${statement.issue}`);
        work += this.#checkStatement(statement);
        if (work > limits.relicStatementWork) {
          throw new RelicError('too_large', `the schema exceeds the work limit of one call, at statement ${at + 1}`);
        }
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
    throw new RelicError('relic_full', `the relic is full (quota: ${quota} bytes)`);
  }
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

/** As many rows as one answer may contain. @throws RelicError for a row that is too long */
function answerOf(rows: readonly SqlRow[]): { rows: JsonObject[]; truncated: boolean } {
  const shown: JsonObject[] = [];
  let chars = 0;
  for (const row of rows.slice(0, limits.relicPageRows)) {
    for (const [name, value] of Object.entries(row)) chars += name.length + charsOf(value);
    if (chars > limits.relicAnswerChars) {
      if (shown.length > 0) break;
      throw new RelicError(
        'too_large',
        `a row has more than ${limits.relicAnswerChars} characters; select parts of it`,
      );
    }
    shown.push(Object.fromEntries(Object.entries(row).map(jsonColumn)));
  }
  return { rows: shown, truncated: shown.length < rows.length };
}

function charsOf(value: SqlValue | ArrayBuffer): number {
  if (typeof value === 'string') return value.length;
  return typeof value === 'object' && value !== null ? (value.byteLength * 4) / 3 : 8;
}

/** Encodes bytes as base64, because JSON has no binary type. */
function jsonColumn([name, value]: [string, SqlValue | ArrayBuffer]): [string, Json] {
  if (value === null || typeof value === 'string') return [name, value];
  if (typeof value === 'number') return [name, Number.isFinite(value) ? value : null];
  const bytes = value instanceof Uint8Array ? value : new Uint8Array(value);
  return [name, base64Of(bytes)];
}

function base64Of(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += 8_192) text += String.fromCharCode(...bytes.subarray(at, at + 8_192));
  return btoa(text);
}
