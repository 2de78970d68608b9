/** Opens the ledger of a state folder. Sets a file aside that is not a ledger, and creates a new one (R1). */
import fs from 'node:fs';

import { isInvalidFile, LedgerError, reasonOf } from './ledger-error.ts';
import { Ledger, LEDGER_FILE } from './ledger.ts';
import type { StateFolder } from '../state.ts';

/** Header of SQLite files. */
const MAGIC = 'SQLite format 3\0';

/**
 * @param now epoch milliseconds
 * @throws LedgerError if the file was written by a newer version, or cannot be read or written; the message names the
 *   file and the remedy
 */
export function openLedger(state: StateFolder, now: () => number): Ledger {
  const file = state.file(LEDGER_FILE);
  try {
    state.create();
    state.requireFile(LEDGER_FILE);
    // before opening it: SQLite would delete the WAL of a file that it considers empty
    if (!isDatabase(file)) state.setAside(LEDGER_FILE, 'it is not a SQLite database');
    try {
      return new Ledger(file, now);
    } catch (fault) {
      const cause = causeOf(fault);
      if (!isInvalidFile(cause)) throw fault;
      state.setAside(LEDGER_FILE, cause instanceof Error ? cause.message : String(cause));
      return new Ledger(file, now);
    }
  } catch (fault) {
    const reason = reasonOf(causeOf(fault));
    if (reason === null) throw fault;
    throw new LedgerError(
      `The ledger ${file} cannot be used: ${reason}. Free disk space and grant this user write access, or use another folder with CORTEX_STATE_DIR`,
      { cause: fault },
    );
  }
}

/** A missing or empty file counts as a database. */
function isDatabase(file: string): boolean {
  if (!fs.existsSync(file)) return true;
  const handle = fs.openSync(file, 'r');
  try {
    const head = Buffer.alloc(MAGIC.length);
    const length = fs.readSync(handle, head);
    return length === 0 || head.toString('latin1') === MAGIC;
  } finally {
    fs.closeSync(handle);
  }
}

/** The error of SQLite or of the file system. */
function causeOf(fault: unknown): unknown {
  return fault instanceof LedgerError && fault.cause !== undefined ? fault.cause : fault;
}
