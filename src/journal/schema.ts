/** The session's tables and their migrations. Migrations only go forward (J9). */
import { EngineError } from '../domain/errors.ts';
import type { SqlDatabase } from '../domain/ports/storage.ts';
import { NEW_SCHEMA, NEW_SCHEMA_VERSION } from './new-schema.ts';

/** An unused session has only this table. `notes`: what the session notes about itself for later hosts (session-notes.ts). */
const SESSION_TABLE = `CREATE TABLE IF NOT EXISTS session (id INTEGER PRIMARY KEY CHECK (id = 1), data TEXT NOT NULL, notes TEXT)`;

const ADD_NOTES = `ALTER TABLE session ADD COLUMN notes TEXT`;

/** One entry per schema version; entry n brings a database from version n to n + 1. */
const MIGRATIONS: readonly (readonly string[])[] = [
  [
    `CREATE TABLE IF NOT EXISTS session (id INTEGER PRIMARY KEY CHECK (id = 1), data TEXT NOT NULL)`,
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
    // Outcomes that later actions can reuse (P6): the position of the result, never the result itself.
    `CREATE TABLE outcomes (
       key TEXT PRIMARY KEY,
       content TEXT NOT NULL,
       seq INTEGER NOT NULL,
       at INTEGER NOT NULL,
       expires_at INTEGER
     ) WITHOUT ROWID`,
  ],
  [
    // Inputs of a run that are not part of an event: mostly streamed text between two events (J6, J9).
    `CREATE TABLE inputs (
       id INTEGER PRIMARY KEY,
       run INTEGER NOT NULL,
       after_seq INTEGER NOT NULL,
       data TEXT NOT NULL
     )`,
    // The run is not complete: more may happen even after its answer (J3).
    `ALTER TABLE runs ADD COLUMN open INTEGER NOT NULL DEFAULT 0`,
    `UPDATE runs SET open = 1 WHERE status IN ('queued', 'running', 'waiting')`,
  ],
  [
    // Feeds: their definition by the model, and their latest values (F2, F3).
    `CREATE TABLE feeds (id TEXT PRIMARY KEY, data TEXT NOT NULL) WITHOUT ROWID`,
  ],
  [
    // The messages that were sent to the model, for debugging.
    `CREATE TABLE prompts (
       id INTEGER PRIMARY KEY,
       run INTEGER NOT NULL,
       iteration INTEGER NOT NULL,
       at INTEGER NOT NULL,
       chars INTEGER NOT NULL,
       data TEXT NOT NULL
     )`,
  ],
  [
    // The conversation before the session (C1). The columns before the text are read without it.
    `CREATE TABLE seeded (
       id INTEGER PRIMARY KEY,
       turn INTEGER NOT NULL,
       role TEXT NOT NULL,
       bytes INTEGER NOT NULL,
       data TEXT NOT NULL
     )`,
  ],
  [
    // Files of messages by the hash of their bytes, in pieces (C2).
    `CREATE TABLE blobs (
       sha256 TEXT NOT NULL,
       part INTEGER NOT NULL,
       bytes BLOB NOT NULL,
       PRIMARY KEY (sha256, part)
     )`,
  ],
  [
    // Calls of client tools are found without reading their run (C3).
    `CREATE INDEX IF NOT EXISTS client_calls ON events (run, iteration) WHERE type IN ('client_tool_called', 'client_tool_settled')`,
  ],
  [
    // Where the bytes of each file of a message are (C2): in rows of `blobs`, or in an object.
    `CREATE TABLE message_files (
       id INTEGER PRIMARY KEY,
       sha256 TEXT NOT NULL,
       size INTEGER NOT NULL,
       name TEXT,
       media_type TEXT,
       place TEXT NOT NULL,
       state TEXT NOT NULL,
       at INTEGER NOT NULL,
       UNIQUE (sha256, place)
     )`,
    `CREATE INDEX unreferred_files ON message_files (at) WHERE state <> 'stored'`,
    `INSERT INTO message_files (sha256, size, place, state, at)
       SELECT sha256, SUM(LENGTH(bytes)), 'rows', 'stored', 0 FROM blobs GROUP BY sha256`,
  ],
  [
    // Runs form a tree: each follows its parent, 0 for none (C4). Most follow the run before them.
    `ALTER TABLE runs ADD COLUMN parent INTEGER NOT NULL DEFAULT 0`,
    `UPDATE runs SET parent = run - 1`,
    `ALTER TABLE runs ADD COLUMN retry_of INTEGER`,
    `CREATE INDEX branched_runs ON runs (parent) WHERE parent <> run - 1`,
    // The run that the next message follows, until there is a run after \`newest\`; without a row, the newest run.
    `CREATE TABLE head (id INTEGER PRIMARY KEY CHECK (id = 1), run INTEGER NOT NULL, newest INTEGER NOT NULL)`,
    // The variables before the first run: those of a branch are these, with the changes of its runs.
    `CREATE TABLE first_variables (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID`,
    `INSERT INTO first_variables (key, value) SELECT key, value FROM variables`,
    `CREATE INDEX variable_changes ON events (run) WHERE type = 'variable_changed'`,
    // The run whose variables were restored last, and the last event before that.
    `CREATE TABLE restored (id INTEGER PRIMARY KEY CHECK (id = 1), run INTEGER NOT NULL, seq INTEGER NOT NULL)`,
    // Messages that came during a run, for its next generation (C5).
    `CREATE TABLE steered (
       run INTEGER NOT NULL,
       number INTEGER NOT NULL,
       seq INTEGER NOT NULL,
       iteration INTEGER NOT NULL,
       idempotency_key TEXT,
       input TEXT NOT NULL,
       PRIMARY KEY (run, number)
     ) WITHOUT ROWID`,
  ],
  [
    // US dollars of each run with a known price; summed up without reading the rows of the runs (C6).
    `ALTER TABLE runs ADD COLUMN cost REAL`,
    `CREATE INDEX run_costs ON runs (cost) WHERE cost IS NOT NULL`,
  ],
  [
    // The workspace (C7). Its files share the stored bytes with messages, which hold theirs for as long as the session.
    `ALTER TABLE message_files ADD COLUMN in_messages INTEGER NOT NULL DEFAULT 1`,
    `CREATE TABLE workspace (
       path TEXT PRIMARY KEY,
       sha256 TEXT NOT NULL,
       size INTEGER NOT NULL,
       executable INTEGER NOT NULL,
       at INTEGER NOT NULL
     ) WITHOUT ROWID`,
    `CREATE INDEX workspace_hashes ON workspace (sha256)`,
    // Attempts of open runs whose files are committed: a recovered one reports them again (J2).
    `CREATE TABLE workspace_commits (key TEXT PRIMARY KEY, run INTEGER NOT NULL) WITHOUT ROWID`,
  ],
  [
    // Number of the messages on the branch up to each run, its own included: the position of its turn (C10).
    `ALTER TABLE runs ADD COLUMN turn INTEGER NOT NULL DEFAULT 0`,
    `WITH RECURSIVE
       said (run, parent, own) AS MATERIALIZED (SELECT run, parent,
         CASE WHEN input <> '' THEN COALESCE(JSON_TYPE(input, '$.content'), 'null') IN ('text', 'array')
           ELSE EXISTS (SELECT 1 FROM chunks WHERE chunks.seq = -runs.run AND field = 'input' AND part = 0
             AND text LIKE '{"type":"message","content":%') END FROM runs),
       counted (run, turn) AS (
         SELECT run, own FROM said WHERE parent = 0
         UNION ALL SELECT said.run, counted.turn + said.own FROM counted JOIN said ON said.parent = counted.run)
     UPDATE runs SET turn = counted.turn FROM counted WHERE counted.run = runs.run`,
    // Summaries of older turns, by the events that have their texts; \`until_run\` 0: they cover only the seeded history.
    `CREATE TABLE summaries (seq INTEGER PRIMARY KEY, until_run INTEGER NOT NULL, turns INTEGER NOT NULL)`,
    // The summary that is due, or was last: how often it was tried, and US dollars of all calls of the session.
    `CREATE TABLE summary_work (
       id INTEGER PRIMARY KEY CHECK (id = 1),
       run INTEGER NOT NULL,
       until_run INTEGER NOT NULL,
       attempts INTEGER NOT NULL,
       pending INTEGER NOT NULL,
       cost REAL
     )`,
  ],
  [
    // The events of a turn before the event of the row, as JSON: a row is what writing costs (J6).
    `ALTER TABLE events ADD COLUMN earlier TEXT`,
    // The first inputs of the generation that no event contains, like a row of \`inputs\`.
    `ALTER TABLE prompts ADD COLUMN after_seq INTEGER`,
    `ALTER TABLE prompts ADD COLUMN inputs TEXT`,
    // US dollars of all runs so far, in the row of the newest one: an entry of an index is another row.
    `ALTER TABLE runs ADD COLUMN spent REAL`,
    `UPDATE runs SET spent = (SELECT SUM(cost) FROM runs) WHERE run = (SELECT MAX(run) FROM runs)`,
    `DROP INDEX run_costs`,
  ],
  // New sessions create a table when it is needed (optional-tables.ts): older code would not find the missing ones.
  [],
  // Notes in the session's row. Unused sessions of earlier versions have no column (addNotes).
  [ADD_NOTES],
];

/** The version written by this code; a higher number was written by newer code. */
export const SCHEMA_VERSION = MIGRATIONS.length;

/** Creates the session's row only: most of the migration is avoided for an unused session. */
export function createSessionTable(db: SqlDatabase): void {
  db.exec(SESSION_TABLE);
}

/** For an unused session of an earlier version. */
export function addNotes(db: SqlDatabase): void {
  db.exec(ADD_NOTES);
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
 * @throws EngineError `schema_too_new` if newer code wrote the database; nothing is written then (J9)
 */
export function readSchema(db: SqlDatabase): FoundSchema | null {
  const tables = tableNames(db);
  if (!tables.has('schema_version')) return tables.has('session') ? { version: 0, tables } : null;
  const version = Number(db.exec(`SELECT version FROM schema_version`)[0]?.['version'] ?? 0);
  if (version > SCHEMA_VERSION) {
    throw new EngineError(
      'schema_too_new',
      `The session is stored with schema ${version}; this version reads up to ${SCHEMA_VERSION}`,
    );
  }
  return { version, tables };
}

/**
 * Brings the database to `SCHEMA_VERSION`, or does nothing if it is current. A new session gets its tables at once.
 *
 * @param stored its version; 0: an unused session, or none
 */
export function migrate(db: SqlDatabase, stored: number): void {
  if (stored === SCHEMA_VERSION) return;
  db.transaction(() => {
    if (stored === 0) db.script(NEW_SCHEMA);
    const version = stored === 0 ? NEW_SCHEMA_VERSION : stored;
    if (version === SCHEMA_VERSION) return;
    for (const statements of MIGRATIONS.slice(version)) {
      for (const statement of statements) db.exec(statement);
    }
    db.exec(`DELETE FROM schema_version`);
    db.exec(`INSERT INTO schema_version (version) VALUES (?)`, SCHEMA_VERSION);
  });
}
