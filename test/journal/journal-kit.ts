/** Creates the journal of a new session. */
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
