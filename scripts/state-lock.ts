/** One system to a state folder: two Workers that write the same databases lock each other out in the middle of a run. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/**
 * Takes the folder for this process, however that ends: the lock is the operating system's, and nothing is left behind
 * that a killed process would have had to remove.
 *
 * @returns what gives it back; null when another process has it
 */
export function lockState(folder: string): (() => void) | null {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const database = new DatabaseSync(join(folder, 'start.lock'));
  try {
    database.exec('PRAGMA busy_timeout = 0; BEGIN EXCLUSIVE');
    return () => database.close();
  } catch (fault) {
    database.close();
    if (fault instanceof Error && fault.message.includes('database is locked')) return null;
    throw fault;
  }
}
