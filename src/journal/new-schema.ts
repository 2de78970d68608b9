/**
 * The tables that every session has, as the migrations leave them, in one script. The migrations would take twice as many
 * statements, and a Durable Object keeps each statement that it has run prepared, at several KiB.
 *
 * A later migration needs no change here: it runs after the script. schema.ts says what the tables are for;
 * optional-tables.ts has the others.
 */

/** The schema version of the script. */
export const NEW_SCHEMA_VERSION = 16;

export const NEW_SCHEMA = `
  CREATE TABLE IF NOT EXISTS session (id INTEGER PRIMARY KEY CHECK (id = 1), data TEXT NOT NULL, notes TEXT);
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
  CREATE TABLE schema_version (version INTEGER NOT NULL);
  INSERT INTO schema_version (version) VALUES (${NEW_SCHEMA_VERSION})`;
