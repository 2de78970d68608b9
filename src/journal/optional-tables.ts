/**
 * Tables that most sessions never use. Each is created with its indexes by the first statement that needs it: an empty
 * table costs a Durable Object a page of memory for itself and for each index, and every query of it a prepared statement.
 * An upgrade that changes one must expect that it is missing.
 */

/** Scripts that create them. */
export const OPTIONAL_TABLES = {
  variables: `CREATE TABLE IF NOT EXISTS variables (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID`,
  first_variables: `CREATE TABLE IF NOT EXISTS first_variables (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID`,
  outcomes: `
    CREATE TABLE IF NOT EXISTS outcomes (
      key TEXT PRIMARY KEY,
      content TEXT NOT NULL,
      seq INTEGER NOT NULL,
      at INTEGER NOT NULL,
      expires_at INTEGER
    ) WITHOUT ROWID`,
  inputs: `
    CREATE TABLE IF NOT EXISTS inputs (id INTEGER PRIMARY KEY, run INTEGER NOT NULL, after_seq INTEGER NOT NULL, data TEXT NOT NULL)`,
  feeds: `CREATE TABLE IF NOT EXISTS feeds (id TEXT PRIMARY KEY, data TEXT NOT NULL) WITHOUT ROWID`,
  seeded: `
    CREATE TABLE IF NOT EXISTS seeded (
      id INTEGER PRIMARY KEY,
      turn INTEGER NOT NULL,
      role TEXT NOT NULL,
      bytes INTEGER NOT NULL,
      data TEXT NOT NULL
    )`,
  blobs: `
    CREATE TABLE IF NOT EXISTS blobs (sha256 TEXT NOT NULL, part INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (sha256, part))`,
  message_files: `
    CREATE TABLE IF NOT EXISTS message_files (
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
    CREATE INDEX IF NOT EXISTS unreferred_files ON message_files (at) WHERE state <> 'stored'`,
  head: `
    CREATE TABLE IF NOT EXISTS head (id INTEGER PRIMARY KEY CHECK (id = 1), run INTEGER NOT NULL, newest INTEGER NOT NULL)`,
  restored: `
    CREATE TABLE IF NOT EXISTS restored (id INTEGER PRIMARY KEY CHECK (id = 1), run INTEGER NOT NULL, seq INTEGER NOT NULL)`,
  steered: `
    CREATE TABLE IF NOT EXISTS steered (
      run INTEGER NOT NULL,
      number INTEGER NOT NULL,
      seq INTEGER NOT NULL,
      iteration INTEGER NOT NULL,
      idempotency_key TEXT,
      input TEXT NOT NULL,
      PRIMARY KEY (run, number)
    ) WITHOUT ROWID`,
  workspace: `
    CREATE TABLE IF NOT EXISTS workspace (
      path TEXT PRIMARY KEY,
      sha256 TEXT NOT NULL,
      size INTEGER NOT NULL,
      executable INTEGER NOT NULL,
      at INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS workspace_hashes ON workspace (sha256)`,
  workspace_commits: `
    CREATE TABLE IF NOT EXISTS workspace_commits (key TEXT PRIMARY KEY, run INTEGER NOT NULL) WITHOUT ROWID`,
  summaries: `
    CREATE TABLE IF NOT EXISTS summaries (seq INTEGER PRIMARY KEY, until_run INTEGER NOT NULL, turns INTEGER NOT NULL)`,
  summary_work: `
    CREATE TABLE IF NOT EXISTS summary_work (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      run INTEGER NOT NULL,
      until_run INTEGER NOT NULL,
      attempts INTEGER NOT NULL,
      pending INTEGER NOT NULL,
      cost REAL
    )`,
} as const satisfies Record<string, string>;

export type OptionalTable = keyof typeof OPTIONAL_TABLES;

const NAMES = Object.keys(OPTIONAL_TABLES) as OptionalTable[];

/** The optional tables that do not exist. @param existing names of tables */
export function missingTables(existing: ReadonlySet<string>): Set<OptionalTable> {
  return new Set(NAMES.filter((name) => !existing.has(name)));
}

export interface Statement {
  /** The optional tables that it reads or writes. */
  readonly optional: readonly OptionalTable[];
  /** Whether it writes rows of `runs`. */
  readonly writesRuns: boolean;
}

/** What is known about each statement: all of their texts are in the code, so there are few. */
const statements = new Map<string, Statement>();

/** What the text of a statement says. */
export function statementOf(sql: string): Statement {
  const known = statements.get(sql);
  if (known !== undefined) return known;
  const named = new Set(Array.from(sql.matchAll(/\b(?:FROM|JOIN|INTO|UPDATE)\s+(\w+)/g), ([, name]) => name ?? ''));
  const statement = {
    optional: NAMES.filter((name) => named.has(name)),
    writesRuns: /\b(?:INTO|UPDATE|DELETE FROM)\s+runs\b/.test(sql),
  };
  statements.set(sql, statement);
  return statement;
}
