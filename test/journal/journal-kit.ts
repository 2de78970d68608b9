/** Creates the journal of a new session. */
import { createOptionalTables } from '../support/optional-tables.ts';
import type { SqlDatabase } from '../../src/domain/ports/storage.ts';
import type { SessionRecord } from '../../src/domain/session.ts';
import { Journal } from '../../src/journal/journal.ts';

export const SESSION_ID = `ses_${'a'.repeat(32)}`;

export const SESSION_RECORD: SessionRecord = {
  session_id: SESSION_ID,
  agent: 'assistant',
  user_id: null,
  owner: null,
  kind: 'chat',
  metadata: {},
  created_at: 0,
};

export function newJournal(sql: SqlDatabase, record: Partial<SessionRecord> = {}): Journal {
  const journal = new Journal(sql);
  journal.create({ ...SESSION_RECORD, ...record });
  return journal;
}

/** Calls `before` with each statement before it runs; an exception from `before` is the statement's exception. */
export function withStatements(db: SqlDatabase, before: (statement: string) => void): SqlDatabase {
  return {
    exec: (sql, ...parameters) => {
      before(sql);
      return db.exec(sql, ...parameters);
    },
    script: (sql) => {
      before(sql);
      db.script(sql);
    },
    transaction: (body) => db.transaction(body),
    sizeBytes: () => db.sizeBytes(),
    sync: () => db.sync(),
  };
}

/** What each schema version has added, the newest first: it is removed in this order. */
const ADDED: readonly (readonly [version: number, ...statements: string[]])[] = [
  [16, `ALTER TABLE session DROP COLUMN notes`],
  [
    14,
    `ALTER TABLE events DROP COLUMN earlier`,
    `ALTER TABLE prompts DROP COLUMN after_seq`,
    `ALTER TABLE prompts DROP COLUMN inputs`,
    `ALTER TABLE runs DROP COLUMN spent`,
    `CREATE INDEX run_costs ON runs (cost) WHERE cost IS NOT NULL`,
  ],
  [13, `DROP TABLE summaries`, `DROP TABLE summary_work`, `ALTER TABLE runs DROP COLUMN turn`],
  [12, `DROP TABLE workspace`, `DROP TABLE workspace_commits`, `ALTER TABLE message_files DROP COLUMN in_messages`],
  [11, `DROP INDEX run_costs`, `ALTER TABLE runs DROP COLUMN cost`],
  [
    10,
    `DROP TABLE steered`,
    `DROP TABLE head`,
    `DROP INDEX variable_changes`,
    `DROP TABLE first_variables`,
    `DROP TABLE restored`,
    `DROP INDEX branched_runs`,
    `ALTER TABLE runs DROP COLUMN retry_of`,
    `ALTER TABLE runs DROP COLUMN parent`,
  ],
  [9, `DROP TABLE message_files`],
  [7, `DROP TABLE blobs`],
  [6, `DROP TABLE seeded`],
  [5, `DROP TABLE prompts`],
  [4, `DROP TABLE feeds`],
  [3, `DROP TABLE inputs`, `ALTER TABLE runs DROP COLUMN open`],
  [2, `DROP TABLE outcomes`],
];

/** Makes a database as an earlier schema version has left it. */
export function downgrade(db: SqlDatabase, to: number): void {
  createOptionalTables(db);
  for (const [version, ...statements] of ADDED) {
    if (version > to) for (const statement of statements) db.exec(statement);
  }
  db.exec(`UPDATE schema_version SET version = ?`, to);
}
