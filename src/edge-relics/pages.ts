/**
 * Pages of an edge relic's keys and of its log (R6). The number of entries and bytes read for one page is limited,
 * regardless of how much the page shows.
 */
import { indexOfText } from '../bounded/text-search.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { SqlDatabase, SqlRow } from '../domain/ports/storage.ts';
import type { WorkMeter } from '../domain/work.ts';

export interface KeyPage {
  readonly table: string;
  readonly prefix: string;
  /** The last key of the previous page. */
  readonly after: string;
  readonly values: boolean;
  readonly limit: number;
  /** Epoch milliseconds; expired entries are left out. */
  readonly now: number;
}

/** Keys in order, with their values if requested; `next` is the key after which the next page begins. */
export function keyPage(
  sql: SqlDatabase,
  meter: WorkMeter,
  { table, prefix, after, values, limit, now }: KeyPage,
): JsonObject {
  const end = behind(prefix);
  const rows = sql.exec(
    `SELECT key, octet_length(value) AS bytes, expires_at FROM ${table}
     WHERE key > ?1 AND key >= ?2 AND (?3 IS NULL OR key < ?3) ORDER BY key LIMIT ?4`,
    after,
    prefix,
    end,
    limits.relicScannedRows,
  );
  meter.charge(rows.length * limits.relicRowSteps);
  const shown: SqlRow[] = [];
  let bytes = 0;
  let next: string | null = rows.length === limits.relicScannedRows ? textOf(rows.at(-1)) : null;
  for (const row of rows) {
    if (isExpired(row, now)) continue;
    if (values) bytes += Number(row['bytes']);
    const isTooMuch = shown.length > 0 && bytes > limits.relicAnswerChars;
    if (!isTooMuch) shown.push(row);
    if (isTooMuch || shown.length === limit) {
      next = textOf(shown.at(-1));
      break;
    }
  }
  if (!values) return { keys: shown.map(textOf), next };
  const entries = shown.map((row): Json => {
    const key = textOf(row);
    const [entry = {}] = sql.exec(`SELECT value, version, updated_at FROM ${table} WHERE key = ?`, key);
    const text = String(entry['value']);
    meter.chargeChars(text.length);
    return {
      key,
      value: JSON.parse(text) as Json,
      version: Number(entry['version']),
      updated_at: new Date(Number(entry['updated_at'])).toISOString(),
    };
  });
  return { entries, next };
}

/** The first text after all texts with this prefix, in SQLite's order; null if there is none. */
function behind(prefix: string): string | null {
  const points = Array.from(prefix, (char) => char.codePointAt(0) ?? 0);
  for (let last = points.pop(); last !== undefined; last = points.pop()) {
    if (last < 0x10_ffff) return String.fromCodePoint(...points, last === 0xd7_ff ? 0xe0_00 : last + 1);
  }
  return null;
}

function textOf(row: SqlRow | undefined): string {
  return String(row?.['key'] ?? '');
}

function isExpired(row: SqlRow, now: number): boolean {
  return row['expires_at'] !== null && Number(row['expires_at']) <= now;
}

export interface LogPage {
  readonly table: string;
  readonly order: 'ASC' | 'DESC';
  /** The number of the last entry of the previous page. */
  readonly after: number;
  /** Epoch milliseconds, both inclusive. */
  readonly since: number;
  readonly until: number;
  /** Only entries whose JSON contains this text. */
  readonly filter: string;
  readonly limit: number;
  readonly now: number;
}

export interface LogEntries {
  readonly entries: readonly JsonObject[];
  /** The number of the last entry on the page; null if there are no more. */
  readonly next: number | null;
}

/** Entries of a log by number. Ends before the page is full when the read limit of one call is reached. */
export function logPage(sql: SqlDatabase, meter: WorkMeter, page: LogPage): LogEntries {
  const entries: JsonObject[] = [];
  let chars = 0;
  let bytes = 0;
  let looked = 0;
  let last: number | null = null;
  for (;;) {
    const most = Math.min(200, limits.relicScannedRows - looked);
    const rows: readonly SqlRow[] = most === 0 ? [] : headsOf(sql, page, last, most);
    meter.charge(rows.length * limits.relicRowSteps);
    for (const row of rows) {
      const number = Number(row['number']);
      if (isAsked(row, page)) {
        bytes += Number(row['bytes']);
        if (entries.length > 0 && bytes > limits.relicScannedBytes) return { entries, next: last };
        const text = String(sql.exec(`SELECT entry FROM ${page.table} WHERE number = ?`, number)[0]?.['entry']);
        meter.chargeChars(text.length);
        if (page.filter === '' || indexOfText(text, page.filter) >= 0) {
          chars += text.length;
          if (entries.length > 0 && chars > limits.relicAnswerChars) return { entries, next: last };
          const at = new Date(Number(row['at'])).toISOString();
          entries.push({ number, at, entry: JSON.parse(text) as Json });
        }
      }
      last = number;
      if (entries.length === page.limit || bytes > limits.relicScannedBytes) return { entries, next: last };
    }
    looked += rows.length;
    if (rows.length < most) return { entries, next: null };
    if (looked >= limits.relicScannedRows) return { entries, next: last };
  }
}

function headsOf(sql: SqlDatabase, { table, order, after }: LogPage, last: number | null, most: number): SqlRow[] {
  const from = order === 'ASC' ? (last ?? after) : after;
  const to = order === 'DESC' && last !== null ? last : Number.MAX_SAFE_INTEGER;
  return sql.exec(
    `SELECT number, at, expires_at, octet_length(entry) AS bytes FROM ${table}
     WHERE number > ?1 AND number < ?2 ORDER BY number ${order} LIMIT ?3`,
    from,
    to,
    most,
  );
}

function isAsked(row: SqlRow, { since, until, now }: LogPage): boolean {
  const at = Number(row['at']);
  return at >= since && at <= until && !isExpired(row, now);
}
