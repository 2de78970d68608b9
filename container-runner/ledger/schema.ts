/** The tables of the ledger (R1). */
import type { DatabaseSync } from 'node:sqlite';

import { LedgerError } from './ledger-error.ts';
import { checkTables, repairRows } from './repair-ledger.ts';

const SCHEMA_VERSION = 3;
const SCHEMA = `
  CREATE TABLE jobs (
    id TEXT PRIMARY KEY, session TEXT NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL, sandbox TEXT,
    request_hash TEXT NOT NULL, created_at INTEGER NOT NULL, started_at INTEGER, ended_at INTEGER,
    end TEXT, exit_code INTEGER, truncated INTEGER NOT NULL DEFAULT 0, workspace TEXT, traceparent TEXT,
    prepared_at INTEGER, spans_due INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE INDEX jobs_by_session ON jobs (session, ended_at);
  CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL, job TEXT NOT NULL, type TEXT NOT NULL,
    data TEXT NOT NULL
  ) STRICT;
  CREATE INDEX events_by_session ON events (session, seq);
  CREATE INDEX events_by_job ON events (job, seq);
  CREATE TABLE tokens (id TEXT PRIMARY KEY, expires_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
`;

/**
 * Creates the tables in a new file. Checks and repairs those of an existing one; a file that is not a ledger is not changed.
 *
 * @param now epoch milliseconds
 * @throws LedgerError if the file was written by a newer version
 * @throws Error of SQLite if it is not a ledger, is one of an earlier schema, or is damaged
 */
export function prepareTables(db: DatabaseSync, file: string, now: number): void {
  const version = Number(db.prepare('PRAGMA user_version').get()?.['user_version'] ?? 0);
  if (version > SCHEMA_VERSION) {
    throw new LedgerError(
      `The ledger ${file} was written by a newer version (schema ${version}, known: ${SCHEMA_VERSION}). Start that version, or move the file away to create a new ledger`,
    );
  }
  if (version === 0) {
    const first = `INSERT INTO sqlite_sequence (name, seq) VALUES ('events', ${Math.floor(now)});`;
    db.exec(`BEGIN; ${SCHEMA} ${first} PRAGMA user_version = ${SCHEMA_VERSION}; COMMIT;`);
    return;
  }
  checkTables(db);
  repairRows(db, now);
}
