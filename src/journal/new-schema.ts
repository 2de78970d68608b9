/**
 * The tables of a new session, as the migrations leave them, in one script. The migrations would take twice as many
 * statements, and a Durable Object keeps each statement that it has run prepared, at several KiB.
 *
 * A later migration needs no change here: it runs after the script. schema.ts says what the tables are for.
 */

/** The schema version of the script. */
export const NEW_SCHEMA_VERSION = 14;

export const NEW_SCHEMA = `
  CREATE TABLE IF NOT EXISTS session (id INTEGER PRIMARY KEY CHECK (id = 1), data TEXT NOT NULL);
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
  CREATE TABLE variables (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE first_variables (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE outcomes (
    key TEXT PRIMARY KEY,
    content TEXT NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    expires_at INTEGER
  ) WITHOUT ROWID;
  CREATE TABLE inputs (id INTEGER PRIMARY KEY, run INTEGER NOT NULL, after_seq INTEGER NOT NULL, data TEXT NOT NULL);
  CREATE TABLE feeds (id TEXT PRIMARY KEY, data TEXT NOT NULL) WITHOUT ROWID;
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
  CREATE TABLE seeded (
    id INTEGER PRIMARY KEY,
    turn INTEGER NOT NULL,
    role TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    data TEXT NOT NULL
  );
  CREATE TABLE blobs (sha256 TEXT NOT NULL, part INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (sha256, part));
  CREATE TABLE message_files (
    id INTEGER PRIMARY KEY,
    sha256 TEXT NOT NULL,
    size INTEGER NOT NULL,
    name TEXT,
    media_type TEXT,
    place TEXT NOT NULL,
    state TEXT NOT NULL,
    at INTEGER NOT NULL,
    in_messages INTEGER NOT NULL DEFAULT 1,
    UNIQUE (sha256, place)
  );
  CREATE INDEX unreferred_files ON message_files (at) WHERE state <> 'stored';
  CREATE TABLE head (id INTEGER PRIMARY KEY CHECK (id = 1), run INTEGER NOT NULL, newest INTEGER NOT NULL);
  CREATE TABLE restored (id INTEGER PRIMARY KEY CHECK (id = 1), run INTEGER NOT NULL, seq INTEGER NOT NULL);
  CREATE TABLE steered (
    run INTEGER NOT NULL,
    number INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    iteration INTEGER NOT NULL,
    idempotency_key TEXT,
    input TEXT NOT NULL,
    PRIMARY KEY (run, number)
  ) WITHOUT ROWID;
  CREATE TABLE workspace (
    path TEXT PRIMARY KEY,
    sha256 TEXT NOT NULL,
    size INTEGER NOT NULL,
    executable INTEGER NOT NULL,
    at INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX workspace_hashes ON workspace (sha256);
  CREATE TABLE workspace_commits (key TEXT PRIMARY KEY, run INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE summaries (seq INTEGER PRIMARY KEY, until_run INTEGER NOT NULL, turns INTEGER NOT NULL);
  CREATE TABLE summary_work (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    run INTEGER NOT NULL,
    until_run INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    pending INTEGER NOT NULL,
    cost REAL
  );
  CREATE TABLE schema_version (version INTEGER NOT NULL);
  INSERT INTO schema_version (version) VALUES (${NEW_SCHEMA_VERSION})`;
