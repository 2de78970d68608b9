/** Classifies errors of SQLite and the file system for the ledger (R1). */

/** The ledger cannot be used: the disk is full, read-only or broken. */
export class LedgerError extends Error {
  override readonly name = 'LedgerError';
}

/** SQLite's primary result codes. */
const CODES = {
  error: 1,
  busy: 5,
  locked: 6,
  readOnly: 8,
  io: 10,
  corrupt: 11,
  full: 13,
  cannotOpen: 14,
  noDatabase: 26,
};
const SQLITE_REASONS: Readonly<Record<number, string>> = {
  [CODES.busy]: 'another process has locked it',
  [CODES.locked]: 'another process has locked it',
  [CODES.readOnly]: 'it is read-only',
  [CODES.io]: 'the disk reports an error',
  [CODES.corrupt]: 'its content is damaged; the next start sets it aside',
  [CODES.full]: 'no space is left on the disk',
  [CODES.cannotOpen]: 'it cannot be opened',
  [CODES.noDatabase]: 'its content is damaged; the next start sets it aside',
};
const FILE_REASONS: Readonly<Record<string, string>> = {
  EROFS: 'the disk is read-only',
  EACCES: 'this user has no write permission',
  EPERM: 'this user has no write permission',
  ENOSPC: 'no space is left on the disk',
  EDQUOT: 'the quota of this user is used up',
  EIO: 'the disk reports an error',
  EEXIST: 'its folder is not a directory',
  ENOTDIR: 'its folder is not a directory',
};

/** Whether a file could not be opened because of its content: it is damaged, or not a ledger. */
export function isInvalidFile(fault: unknown): boolean {
  const code = primaryCode(fault);
  // missing or foreign tables are a plain SQLITE_ERROR
  return code === CODES.error || code === CODES.corrupt || code === CODES.noDatabase;
}

/** Why an intact ledger cannot be used now; null for other errors. */
export function reasonOf(fault: unknown): string | null {
  const code = primaryCode(fault);
  if (code !== null) return SQLITE_REASONS[code] ?? null;
  if (fault instanceof Error && 'code' in fault && typeof fault.code === 'string') {
    return FILE_REASONS[fault.code] ?? null;
  }
  return null;
}

function primaryCode(fault: unknown): number | null {
  if (!(fault instanceof Error) || !('errcode' in fault) || typeof fault.errcode !== 'number') return null;
  return fault.errcode & 0xff;
}
