/** Allows one system per state folder: two Workers on the same databases would lock each other out. */
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { privateFolder } from '../../container-runner/private-folder.ts';

/**
 * Locks the folder for this process. The operating system releases the lock when the process ends in any way, so no
 * stale lock can remain.
 *
 * @returns a function that releases the lock; null if another process holds it
 */
export function lockState(folder: string): (() => void) | null {
  privateFolder(folder);
  const file = join(folder, 'start.lock');
  closeSync(openSync(file, 'a', 0o600));
  const database = new DatabaseSync(file);
  try {
    database.exec('PRAGMA busy_timeout = 0; BEGIN EXCLUSIVE');
    return () => database.close();
  } catch (fault) {
    database.close();
    if (fault instanceof Error && fault.message.includes('database is locked')) return null;
    throw fault;
  }
}
