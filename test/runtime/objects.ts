/** What is in the objects of sessions. */
import { runInDurableObject } from 'cloudflare:test';
import { sessionKey } from '../../src/domain/session.ts';
import { durableSql } from '../../src/durable/sql-storage.ts';
import { Journal } from '../../src/journal/journal.ts';
import { SESSIONS } from './bindings.ts';

export const alarmOf = (session: string): Promise<number | null> =>
  runInDurableObject(SESSIONS.getByName(session), (_object, { storage }) => storage.getAlarm());

/** What the session has noted for later hosts (session-notes.ts), by key; empty without a session. */
export function notesIn({ sql }: Pick<DurableObjectStorage, 'sql'>): Record<string, unknown> {
  const [table] = sql.exec(`SELECT name FROM sqlite_master WHERE name = 'session'`).toArray();
  const [row] = table === undefined ? [] : sql.exec<{ notes: string | null }>(`SELECT notes FROM session`).toArray();
  return JSON.parse(row?.notes ?? '{}') as Record<string, unknown>;
}

/** What names a session for relics, jobs and calls (T5), as its object has stored it; empty without a session. */
export async function storedKey(id: string): Promise<string> {
  return await runInDurableObject(SESSIONS.getByName(id), (_object, { storage }) => {
    const { record } = new Journal(durableSql(storage));
    return record === null ? '' : sessionKey(record);
  });
}
