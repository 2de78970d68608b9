/** Sets aside databases of the Worker that are no longer valid, before the start, so that all others can be served. */
import { closeSync, openSync, readSync, readdirSync, renameSync } from 'node:fs';
import { join, relative } from 'node:path';

const MAGIC = Buffer.from('SQLite format 3\0', 'latin1');
const COMPANIONS = ['', '-wal', '-shm'] as const;
const MARK = '.sqlite.set-aside-';
/** Maximum number of files that `setAsideNames` returns. */
const MOST_NAMES = 20;

/**
 * Renames every `.sqlite` file below `folder` without a valid header, with its companions. Nothing is deleted, and the
 * object creates a new database. Damage elsewhere in a file causes `500` answers of that object only.
 *
 * @param at suffix of the new names
 * @returns the new names, relative to `folder`
 */
export function setAsideDamaged(folder: string, at: string): string[] {
  const kept: string[] = [];
  for (const file of filesBelow(folder, (name) => name.endsWith('.sqlite'))) {
    if (isDatabase(file)) continue;
    for (const suffix of COMPANIONS) rename(`${file}${suffix}`, `${file}.set-aside-${at}${suffix}`);
    kept.push(relative(folder, `${file}.set-aside-${at}`));
  }
  return kept;
}

/**
 * Files below `folder` that this start or an earlier one has set aside, and that still exist.
 *
 * @returns paths relative to `folder`, newest first, at most 20
 */
export function setAsideNames(folder: string): string[] {
  return filesBelow(folder, (name) => name.includes(MARK) && !/-(?:wal|shm)$/.test(name))
    .map((file) => relative(folder, file))
    .toSorted((a, b) => (timeOf(a) < timeOf(b) ? 1 : -1))
    .slice(0, MOST_NAMES);
}

function timeOf(name: string): string {
  return name.slice(name.indexOf(MARK));
}

function filesBelow(folder: string, isWanted: (name: string) => boolean): string[] {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && isWanted(entry.name))
      .map(({ parentPath, name }) => join(parentPath, name));
  } catch {
    // The folder does not exist yet.
    return [];
  }
}

/** An empty file is a new database. */
function isDatabase(file: string): boolean {
  const header = Buffer.alloc(MAGIC.length);
  const descriptor = openSync(file, 'r');
  try {
    const read = readSync(descriptor, header, 0, header.length, 0);
    return read === 0 || (read === header.length && header.equals(MAGIC));
  } finally {
    closeSync(descriptor);
  }
}

function rename(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (fault) {
    if ((fault as NodeJS.ErrnoException).code !== 'ENOENT') throw fault;
  }
}
