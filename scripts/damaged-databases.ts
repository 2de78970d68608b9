/** Databases of the Worker that are no databases any more: each is set aside before the start, so that the rest serves. */
import { closeSync, openSync, readSync, readdirSync, renameSync } from 'node:fs';
import { join, relative } from 'node:path';

const MAGIC = Buffer.from('SQLite format 3\0', 'latin1');
const COMPANIONS = ['', '-wal', '-shm'] as const;
const MARK = '.sqlite.set-aside-';
/** How many files `setAsideNames` names. */
const MOST_NAMES = 20;

/**
 * Renames every `.sqlite` file below `folder` that does not begin as one, with its companions. Nothing is deleted, and
 * the object makes a new one. Damage further inside a file shows as `500` of that one object only.
 *
 * @param at part of the new names
 * @returns the files by their names now, relative to `folder`
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
 * What was set aside below `folder` and is still there, by this start or an earlier one.
 *
 * @returns files relative to `folder`, the newest first, at most 20
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
    // There is no folder yet.
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
