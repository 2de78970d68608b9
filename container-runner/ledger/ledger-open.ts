/** Opens the ledger of a state folder; a file that is no ledger is set aside, and a new one begins (R1). */
import fs from 'node:fs';

import { isGarbage, LedgerFault, reasonOf } from './ledger-fault.ts';
import { Ledger, LEDGER_FILE } from './ledger.ts';
import type { StateFolder } from '../state.ts';

/** How a file of SQLite begins. */
const MAGIC = 'SQLite format 3\0';

/**
 * @param now epoch milliseconds
 * @throws LedgerFault when the file was written by a newer version, or cannot be read or written; it names the file
 *   and what to do
 */
export function openLedger(state: StateFolder, now: () => number): Ledger {
  const file = state.file(LEDGER_FILE);
  try {
    state.create();
    state.requireFile(LEDGER_FILE);
    // before SQLite sees it: that would remove the log of what it takes for an empty file
    if (!isDatabase(file)) state.setAside(LEDGER_FILE, 'it is not an SQLite database');
    try {
      return new Ledger(file, now);
    } catch (fault) {
      const cause = causeOf(fault);
      if (!isGarbage(cause)) throw fault;
      state.setAside(LEDGER_FILE, cause instanceof Error ? cause.message : String(cause));
      return new Ledger(file, now);
    }
  } catch (fault) {
    const reason = reasonOf(causeOf(fault));
    if (reason === null) throw fault;
    throw new LedgerFault(
      `The ledger ${file} cannot be used: ${reason}. Make room for it and let this user write it, or choose another folder with CORTEX_STATE_DIR`,
      { cause: fault },
    );
  }
}

/** What begins like one, is empty, or is not there yet. */
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
  return fault instanceof LedgerFault && fault.cause !== undefined ? fault.cause : fault;
}
