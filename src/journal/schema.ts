/** The session's tables and how they came to be. Migrations only go forward (J9). */
import { EngineError } from '../domain/errors.ts';
import type { SqlDatabase } from '../domain/ports.ts';

/** Older and younger than every version: all that a session has until something happens in it. */
const SESSION_TABLE = `CREATE TABLE IF NOT EXISTS session (id INTEGER PRIMARY KEY CHECK (id = 1), data TEXT NOT NULL)`;

/** One entry per schema version; entry n brings a database from version n to n + 1. */
const MIGRATIONS: readonly (readonly string[])[] = [
  [
    SESSION_TABLE,
    `CREATE TABLE events (
       seq INTEGER PRIMARY KEY,
       run INTEGER NOT NULL,
       iteration INTEGER NOT NULL,
       type TEXT NOT NULL,
       at INTEGER NOT NULL,
       action_id TEXT,
       action_name TEXT,
       data TEXT,
       state TEXT
     )`,
    `CREATE TABLE chunks (
       seq INTEGER NOT NULL,
       field TEXT NOT NULL,
       part INTEGER NOT NULL,
       text TEXT NOT NULL,
       PRIMARY KEY (seq, field, part)
     ) WITHOUT ROWID`,
    `CREATE TABLE runs (
       run INTEGER PRIMARY KEY,
       status TEXT NOT NULL,
       first_seq INTEGER NOT NULL,
       last_seq INTEGER,
       started_at INTEGER NOT NULL,
       ended_at INTEGER,
       idempotency_key TEXT,
       input TEXT NOT NULL
     )`,
    `CREATE TABLE variables (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID`,
  ],
  [
    // What stands for later actions (P6): where its result is, never the result itself.
    `CREATE TABLE outcomes (
       key TEXT PRIMARY KEY,
       content TEXT NOT NULL,
       seq INTEGER NOT NULL,
       at INTEGER NOT NULL,
       expires_at INTEGER
     ) WITHOUT ROWID`,
  ],
  [
    // What a run was told, where no event carries it: streamed text between two events, mostly (J6, J9).
    `CREATE TABLE inputs (
       id INTEGER PRIMARY KEY,
       run INTEGER NOT NULL,
       after_seq INTEGER NOT NULL,
       data TEXT NOT NULL
     )`,
    // Something of the run is still to come, even after its answer (J3).
    `ALTER TABLE runs ADD COLUMN open INTEGER NOT NULL DEFAULT 0`,
    `UPDATE runs SET open = 1 WHERE status IN ('queued', 'running', 'waiting')`,
  ],
  [
    // Feeds: what the model made of them, and the latest value of each (F2, F3).
    `CREATE TABLE feeds (id TEXT PRIMARY KEY, data TEXT NOT NULL) WITHOUT ROWID`,
  ],
];

/** Written by this code; a database with a higher number was written by newer code. */
export const SCHEMA_VERSION = MIGRATIONS.length;

/** The session's row alone: most of a migration's time is saved for a session that nobody speaks in, or not yet. */
export function createSessionTable(db: SqlDatabase): void {
  db.exec(SESSION_TABLE);
}

/**
 * Reads the schema version without writing anything: null for an empty database, 0 where a session was created in
 * which nothing has happened yet.
 *
 * @throws EngineError `schema_too_new` when newer code wrote the database; nothing is written then (J9)
 */
export function schemaVersion(db: SqlDatabase): number | null {
  const tables = db.exec(
    `SELECT name FROM sqlite_master WHERE type = 'table' AND name IN ('schema_version', 'session')`,
  );
  if (tables.length === 0) return null;
  if (!tables.some(({ name }) => name === 'schema_version')) return 0;
  const version = Number(db.exec(`SELECT version FROM schema_version`)[0]?.['version'] ?? 0);
  if (version > SCHEMA_VERSION) {
    throw new EngineError(
      'schema_too_new',
      `The session is stored with schema ${version}; this version reads up to ${SCHEMA_VERSION}`,
    );
  }
  return version;
}

/** Brings the database to `SCHEMA_VERSION`; does nothing when it is there already. */
export function migrate(db: SqlDatabase): void {
  const version = schemaVersion(db) ?? 0;
  if (version === SCHEMA_VERSION) return;
  db.transaction(() => {
    db.exec(`CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)`);
    for (const statements of MIGRATIONS.slice(version)) {
      for (const statement of statements) db.exec(statement);
    }
    db.exec(`DELETE FROM schema_version`);
    db.exec(`INSERT INTO schema_version (version) VALUES (?)`, SCHEMA_VERSION);
  });
}
