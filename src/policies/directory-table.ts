/**
 * One shard of the directory of sessions (C6), in a SQL database.
 *
 * Owns the table and the order of its rows. Does not own what a session writes (engine/session/directory-outbox.ts), or
 * the merging of shards (domain/directory.ts).
 *
 * Invariants:
 *  1. A write with a lower number than the stored one changes nothing: it is of a host that was lost.
 *  2. A forgotten session stays forgotten: a tombstone holds its id and incarnation only, for `limits.directoryForgottenMs`.
 *  3. A page reads at most `limits.directoryScannedRows` rows. Each filter has an index; of several, one is used.
 */
import type { DirectoryEntry, DirectoryPage, DirectoryRecord, DirectoryRows } from '../domain/directory.ts';
import type { DirectoryPosition } from '../domain/list-page.ts';
import { limits } from '../domain/limits.ts';
import type { SqlDatabase, SqlRow, SqlValue } from '../domain/ports/storage.ts';

const ORDER = `updated_at, session_id`;

const SCHEMA = [
  `CREATE TABLE IF NOT EXISTS sessions (
     session_id TEXT NOT NULL,
     incarnation TEXT NOT NULL,
     number INTEGER NOT NULL,
     updated_at INTEGER NOT NULL,
     agent TEXT NOT NULL,
     user_id TEXT,
     status TEXT NOT NULL,
     entry TEXT NOT NULL,
     deleted_at INTEGER,
     PRIMARY KEY (session_id, incarnation)
   ) WITHOUT ROWID`,
  `CREATE INDEX IF NOT EXISTS sessions_by_time ON sessions (${ORDER}) WHERE deleted_at IS NULL`,
  `CREATE INDEX IF NOT EXISTS sessions_by_user ON sessions (user_id, ${ORDER})
     WHERE deleted_at IS NULL AND user_id IS NOT NULL`,
  `CREATE INDEX IF NOT EXISTS sessions_by_agent ON sessions (agent, ${ORDER}) WHERE deleted_at IS NULL`,
  `CREATE INDEX IF NOT EXISTS sessions_active ON sessions (status, ${ORDER})
     WHERE deleted_at IS NULL AND status <> 'idle'`,
  `CREATE INDEX IF NOT EXISTS sessions_forgotten ON sessions (deleted_at) WHERE deleted_at IS NOT NULL`,
];

interface Listed {
  readonly entry: DirectoryEntry;
}

interface Condition {
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

export class DirectoryTable {
  readonly #db: SqlDatabase;
  readonly #now: () => number;

  /** @param now epoch milliseconds */
  constructor(db: SqlDatabase, now: () => number) {
    this.#db = db;
    this.#now = now;
    for (const statement of SCHEMA) db.exec(statement);
  }

  record({ incarnation, number, entry }: Pick<DirectoryRecord, 'incarnation' | 'number'> & Listed): void {
    const { session_id: id, updated_at: updatedAt, agent, user_id: userId, status } = entry;
    this.#db.exec(
      `INSERT INTO sessions (session_id, incarnation, number, updated_at, agent, user_id, status, entry)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (session_id, incarnation) DO UPDATE SET number = excluded.number, updated_at = excluded.updated_at,
         agent = excluded.agent, user_id = excluded.user_id, status = excluded.status, entry = excluded.entry
       WHERE excluded.number > sessions.number AND sessions.deleted_at IS NULL`,
      id,
      incarnation,
      number,
      updatedAt,
      agent,
      userId,
      status,
      JSON.stringify(entry),
    );
  }

  /** Whether this session was deleted. */
  isForgotten(sessionId: string, incarnation: string): boolean {
    const sql = `SELECT 1 FROM sessions WHERE session_id = ? AND incarnation = ? AND deleted_at IS NOT NULL`;
    return this.#db.exec(sql, sessionId, incarnation).length > 0;
  }

  forget(sessionId: string, incarnation: string): void {
    this.#db.exec(
      `INSERT INTO sessions (session_id, incarnation, number, updated_at, agent, status, entry, deleted_at)
       VALUES (?, ?, 0, 0, '', 'idle', '', ?)
       ON CONFLICT (session_id, incarnation) DO UPDATE SET updated_at = 0, agent = '', user_id = NULL, status = 'idle',
         entry = '', deleted_at = excluded.deleted_at
       WHERE sessions.deleted_at IS NULL`,
      sessionId,
      incarnation,
      this.#now(),
    );
    this.removeForgotten();
  }

  /** Entries of a page, in order. */
  list(page: DirectoryPage): DirectoryRows {
    const { index, found, rest } = planOf(page);
    const scan = `SELECT ${ORDER}, agent, status, entry FROM sessions INDEXED BY ${index}
      WHERE deleted_at IS NULL AND ${found.map(({ sql }) => `${sql} AND `).join('')}(${ORDER}) < (?, ?)
      ORDER BY updated_at DESC, session_id DESC LIMIT ?`;
    const valuesOf = ({ at, id }: DirectoryPosition): SqlValue[] => [...found.flatMap(({ values }) => values), at, id];
    let place = page.before ?? { at: Number.MAX_SAFE_INTEGER, id: '' };
    if (rest.length === 0) {
      const rows = this.#db.exec(scan, ...valuesOf(place), page.limit);
      return { entries: rows.map(({ entry }) => entryIn(entry)), scannedTo: null };
    }
    // Part by part, each twice as long as the one before it: no row is read again for the place where the scan has ended,
    // and a page whose filters most rows fit reads few others.
    const fits = rest.map(({ sql }) => sql).join(' AND ');
    const filters = rest.flatMap(({ values }) => values);
    const entries: DirectoryEntry[] = [];
    let left: number = limits.directoryScannedRows;
    for (let size = page.limit; left > 0; size *= 2) {
      const most = Math.min(size, left);
      const sql = `SELECT ${ORDER}, CASE WHEN ${fits} THEN entry END AS entry FROM (${scan})`;
      const rows = this.#db.exec(sql, ...filters, ...valuesOf(place), most);
      entries.push(...rows.flatMap(({ entry }) => (entry === null ? [] : entryIn(entry))));
      if (entries.length >= page.limit) return { entries: entries.slice(0, page.limit), scannedTo: null };
      const last = rows.at(-1);
      if (last === undefined || rows.length < most) return { entries, scannedTo: null };
      place = placeOf(last);
      left -= most;
    }
    return { entries, scannedTo: place };
  }

  /** Removes sessions that were forgotten long ago, at most `limits.directoryPurgedRows`. */
  removeForgotten(): void {
    this.#db.exec(
      `DELETE FROM sessions WHERE (session_id, incarnation) IN (SELECT session_id, incarnation FROM sessions
         WHERE deleted_at IS NOT NULL AND deleted_at < ? ORDER BY deleted_at LIMIT ?)`,
      this.#now() - limits.directoryForgottenMs,
      limits.directoryPurgedRows,
    );
  }
}

/** The index that a page is read with, the conditions that it decides, and those that each row is tested for. */
function planOf({ userId, agents, status }: DirectoryPage): {
  readonly index: string;
  readonly found: readonly Condition[];
  readonly rest: readonly Condition[];
} {
  const user = userId === null ? null : { sql: `user_id = ?`, values: [userId] };
  const agent = agents === null ? null : { sql: `agent IN (${agents.map(() => '?').join(', ')})`, values: [...agents] };
  const state = status === null ? null : { sql: `status = ?`, values: [status] };
  const rest = (...conditions: readonly (Condition | null)[]): Condition[] => conditions.filter((one) => one !== null);
  if (user !== null) return { index: 'sessions_by_user', found: [user], rest: rest(agent, state) };
  if (state !== null && status !== 'idle') {
    const active = { ...state, sql: `status <> 'idle' AND ${state.sql}` };
    return { index: 'sessions_active', found: [active], rest: rest(agent) };
  }
  if (agent !== null && agents?.length === 1) {
    return { index: 'sessions_by_agent', found: [{ ...agent, sql: `agent = ?` }], rest: rest(state) };
  }
  return { index: 'sessions_by_time', found: [], rest: rest(agent, state) };
}

function entryIn(text: SqlValue | undefined): DirectoryEntry {
  return JSON.parse(String(text)) as DirectoryEntry;
}

function placeOf(row: SqlRow): DirectoryPosition {
  return { at: Number(row['updated_at']), id: String(row['session_id']) };
}
