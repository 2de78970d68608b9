/**
 * One shard of the index of executions (H1), in a SQL database.
 *
 * Owns the table and the order of its rows. Does not own what a session writes (engine/session/directory-outbox.ts), or
 * the merging of shards (domain/directory.ts).
 *
 * Invariants:
 *  1. The end of a run is never replaced, so entries may arrive in any order, and repeatedly.
 *  2. A page reads at most `limits.directoryScannedRows` rows, and says how far.
 *  3. A completed run costs two rows, one of the table and one of the order by time: only rare statuses have an index.
 */
import type { ExecutionEntry, ExecutionRows, ExecutionsPage } from '../domain/execution.ts';
import { limits } from '../domain/limits.ts';
import type { SqlDatabase, SqlValue } from '../domain/ports/storage.ts';
import { sessionKey } from '../domain/session.ts';
import type { SessionIdentity } from '../domain/session.ts';

const SCHEMA = [
  `CREATE TABLE IF NOT EXISTS executions (
     execution_id TEXT PRIMARY KEY,
     started_at INTEGER NOT NULL,
     kind TEXT NOT NULL,
     status TEXT NOT NULL,
     entry TEXT NOT NULL
   ) WITHOUT ROWID`,
  `CREATE INDEX IF NOT EXISTS executions_by_time ON executions (started_at, execution_id)`,
  `CREATE INDEX IF NOT EXISTS executions_unusual ON executions (status, started_at, execution_id)
     WHERE status <> 'completed'`,
];

export class ExecutionTable {
  readonly #db: SqlDatabase;

  constructor(db: SqlDatabase) {
    this.#db = db;
    for (const statement of SCHEMA) db.exec(statement);
  }

  record(entry: ExecutionEntry): void {
    this.#db.exec(
      `INSERT INTO executions (execution_id, started_at, kind, status, entry) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (execution_id) DO UPDATE SET status = excluded.status, entry = excluded.entry
       WHERE executions.status = 'waiting' AND excluded.status <> 'waiting'`,
      entry.execution_id,
      entry.started_at,
      entry.kind,
      entry.status,
      JSON.stringify(entry),
    );
  }

  /** Removes the runs of a session. */
  forget(session: SessionIdentity): void {
    // The ids of its runs begin in the same way, and `:` follows after the digits.
    const prefix = `run_${sessionKey(session).replace(/^ses_/, '')}_`;
    this.#db.exec(`DELETE FROM executions WHERE execution_id >= ? AND execution_id < ?`, `${prefix}0`, `${prefix}:`);
  }

  /** Removes entries of runs that began before this time, at most `limits.directoryPurgedRows`. */
  removeBefore(time: number): void {
    this.#db.exec(
      `DELETE FROM executions WHERE execution_id IN
         (SELECT execution_id FROM executions WHERE started_at < ? ORDER BY started_at LIMIT ?)`,
      time,
      limits.directoryPurgedRows,
    );
  }

  /** Entries of a page, newest first; ties are ordered by id, descending. */
  list({ limit, before, status, kind }: ExecutionsPage): ExecutionRows {
    const isIndexed = status !== null && status !== 'completed';
    const index = isIndexed ? 'executions_unusual' : 'executions_by_time';
    const found = isIndexed ? `status <> 'completed' AND status = ? AND` : '';
    const filters: readonly (readonly [sql: string, value: string | null])[] = [
      ['status = ?', isIndexed ? null : status],
      ['kind = ?', kind],
    ];
    const rest = filters.filter(([, value]) => value !== null);
    const fits = rest.map(([sql]) => sql).join(' AND ') || '1';
    const values = rest.map(([, value]) => value);
    const scan = `SELECT started_at, execution_id, kind, status, entry FROM executions INDEXED BY ${index}
      WHERE ${found} (started_at, execution_id) < (?, ?) ORDER BY started_at DESC, execution_id DESC LIMIT ?`;
    const sql = `SELECT started_at, execution_id, CASE WHEN ${fits} THEN entry END AS entry FROM (${scan})`;
    const entries: ExecutionEntry[] = [];
    let place = before ?? { at: Number.MAX_SAFE_INTEGER, id: '' };
    let left: number = limits.directoryScannedRows;
    // Part by part, each twice as long as the one before it: without a filter, the first part is the page.
    for (let size = limit; left > 0; size *= 2) {
      const most = Math.min(size, left);
      const given: SqlValue[] = [...values, ...(isIndexed ? [status] : []), place.at, place.id, most];
      const rows = this.#db.exec(sql, ...given);
      entries.push(...rows.flatMap(({ entry }) => (entry === null ? [] : entryIn(entry))));
      if (entries.length >= limit) return { entries: entries.slice(0, limit), scannedTo: null };
      const last = rows.at(-1);
      if (last === undefined || rows.length < most) return { entries, scannedTo: null };
      place = { at: Number(last['started_at']), id: String(last['execution_id']) };
      left -= most;
    }
    return { entries, scannedTo: place };
  }
}

function entryIn(text: SqlValue | undefined): ExecutionEntry {
  return JSON.parse(String(text)) as ExecutionEntry;
}
