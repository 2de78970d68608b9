/** What SQLite and the file system say of the ledger, in words for the operator and for the caller (R1). */

/** The ledger is there and cannot do what is asked: the disk is full, read-only or broken. */
export class LedgerFault extends Error {
  override readonly name = 'LedgerFault';
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
const OF_THE_DISK: Readonly<Record<number, string>> = {
  [CODES.busy]: 'another process holds it',
  [CODES.locked]: 'another process holds it',
  [CODES.readOnly]: 'it is read-only',
  [CODES.io]: 'the disk reports an error',
  [CODES.corrupt]: 'its content is damaged; the next start sets it aside',
  [CODES.full]: 'no space is left on the disk',
  [CODES.cannotOpen]: 'it cannot be opened',
  [CODES.noDatabase]: 'its content is damaged; the next start sets it aside',
};
const OF_THE_SYSTEM: Readonly<Record<string, string>> = {
  EROFS: 'the disk is read-only',
  EACCES: 'this user may not write it',
  EPERM: 'this user may not write it',
  ENOSPC: 'no space is left on the disk',
  EDQUOT: 'the quota of this user is used up',
  EIO: 'the disk reports an error',
  EEXIST: 'something else has the name of its folder',
  ENOTDIR: 'something else has the name of its folder',
};

/** Whether opening a file failed because of what is in it: it is no ledger, or a damaged one. */
export function isGarbage(fault: unknown): boolean {
  const code = primaryCode(fault);
  // tables that are missing, or are others than ours, are a plain error
  return code === CODES.error || code === CODES.corrupt || code === CODES.noDatabase;
}

/** Why a ledger that may be good cannot be used now; null for any other fault. */
export function reasonOf(fault: unknown): string | null {
  const code = primaryCode(fault);
  if (code !== null) return OF_THE_DISK[code] ?? null;
  if (fault instanceof Error && 'code' in fault && typeof fault.code === 'string') {
    return OF_THE_SYSTEM[fault.code] ?? null;
  }
  return null;
}

function primaryCode(fault: unknown): number | null {
  if (!(fault instanceof Error) || !('errcode' in fault) || typeof fault.errcode !== 'number') return null;
  return fault.errcode & 0xff;
}
