/** What names a session for relics, jobs and calls (T5), as its object has stored it. */
import { runInDurableObject } from 'cloudflare:test';
import { sessionKey } from '../../src/domain/session.ts';
import { durableSql } from '../../src/durable/sql-storage.ts';
import { Journal } from '../../src/journal/journal.ts';
import { SESSIONS } from './bindings.ts';

/** Empty if there is no session with this id. */
export async function storedKey(id: string): Promise<string> {
  return await runInDurableObject(SESSIONS.getByName(id), (_object, { storage }) => {
    const { record } = new Journal(durableSql(storage));
    return record === null ? '' : sessionKey(record);
  });
}
