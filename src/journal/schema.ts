/**
 * The tables that every session has, in one script: a Durable Object keeps each statement that it has run prepared, at several
 * KiB. optional-tables.ts has the others. Upgrades only go forward (J9).
 */
import { EngineError } from '../domain/errors.ts';
import type { SqlDatabase } from '../domain/ports/storage.ts';

/** An unused session has only this table. `notes`: what the session notes about itself for later hosts (session-notes.ts). */
const SESSION_TABLE = `CREATE TABLE IF NOT EXISTS session (id INTEGER PRIMARY KEY CHECK (id = 1), data TEXT NOT NULL, notes TEXT)`;

/**
 * `events.earlier`: the events of a turn before that of the row, as JSON, because a row is what writing costs (J6).
 * `chunks`: texts that are too long for their row.
 * `runs.open`: more may happen, even after the answer (J3). `parent`: the run that it follows, 0 for none (C4). `turn`: the
 * number of messages on the branch up to it, its own included (C10). `spent`: US dollars of all runs so far (C6).
 * `prompts`: the messages that were sent to the model; `inputs`: the first inputs of the generation that no event contains.
 */
const SCHEMA = `
  ${SESSION_TABLE};
  CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    iteration INTEGER NOT NULL,
    type TEXT NOT NULL,
    at INTEGER NOT NULL,
    action_id TEXT,
    action_name TEXT,
    data TEXT,
    state TEXT,
    earlier TEXT
  );
  CREATE INDEX client_calls ON events (run, iteration) WHERE type IN ('client_tool_called', 'client_tool_settled');
  CREATE INDEX variable_changes ON events (run) WHERE type = 'variable_changed';
  CREATE TABLE chunks (
    seq INTEGER NOT NULL,
    field TEXT NOT NULL,
    part INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (seq, field, part)
  ) WITHOUT ROWID;
  CREATE TABLE runs (
    run INTEGER PRIMARY KEY,
    status TEXT NOT NULL,
    first_seq INTEGER NOT NULL,
    last_seq INTEGER,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    idempotency_key TEXT,
    input TEXT NOT NULL,
    open INTEGER NOT NULL DEFAULT 0,
    parent INTEGER NOT NULL DEFAULT 0,
    retry_of INTEGER,
    cost REAL,
    turn INTEGER NOT NULL DEFAULT 0,
    spent REAL
  );
  CREATE INDEX branched_runs ON runs (parent) WHERE parent <> run - 1;
  CREATE TABLE prompts (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    iteration INTEGER NOT NULL,
    at INTEGER NOT NULL,
    chars INTEGER NOT NULL,
    data TEXT NOT NULL,
    after_seq INTEGER,
    inputs TEXT
  );
  CREATE TABLE schema (version INTEGER NOT NULL);
  INSERT INTO schema (version) VALUES (1)`;

/** Entry n is the script that brings a database from schema n + 1 to n + 2. Released entries never change. */
const UPGRADES: readonly string[] = [];

/** Creates the session's row only: most of the schema is avoided for an unused session. */
export function createSessionTable(db: SqlDatabase): void {
  db.exec(SESSION_TABLE);
}

export function tableNames(db: SqlDatabase): Set<string> {
  return new Set(db.exec(`SELECT name FROM sqlite_master WHERE type = 'table'`).map(({ name }) => String(name)));
}

/** What a database has: its schema version, 0 for an unused session, and the names of its tables. */
interface FoundSchema {
  readonly version: number;
  readonly tables: ReadonlySet<string>;
}

/**
 * Reads what a database has without writing anything: null for one without a session.
 *
 * @throws EngineError `schema_too_new` if newer code wrote the database, `schema_too_old` if code before schema 1 did; nothing
 *   is written then (J9)
 */
export function readSchema(db: SqlDatabase, upgrades = UPGRADES): FoundSchema | null {
  const tables = tableNames(db);
  if (tables.has('schema_version')) {
    throw new EngineError(
      'schema_too_old',
      'The session is stored by a version before schema 1, which cannot be read. Locally, remove the state folder; on ' +
        'Cloudflare, deploy under a new Worker name',
    );
  }
  if (!tables.has('schema')) return tables.has('session') ? { version: 0, tables } : null;
  const version = Number(db.exec(`SELECT version FROM schema`)[0]?.['version']);
  const newest = upgrades.length + 1;
  if (version > newest) {
    throw new EngineError(
      'schema_too_new',
      `The session is stored with schema ${version}; this version reads up to ${newest}`,
    );
  }
  return { version, tables };
}

/**
 * Brings the database to the newest schema, or does nothing if it has it.
 *
 * @param stored its version; 0: an unused session, or none
 * @returns whether something has changed
 */
export function upgradeSchema(db: SqlDatabase, stored: number, upgrades = UPGRADES): boolean {
  const newest = upgrades.length + 1;
  if (stored === newest) return false;
  db.transaction(() => {
    if (stored === 0) db.script(SCHEMA);
    for (const script of upgrades.slice(Math.max(stored, 1) - 1)) db.script(script);
    if (newest > 1) db.exec(`UPDATE schema SET version = ?`, newest);
  });
  return true;
}
