/**
 * Decides which files of a project are read and written: those whose real path is inside of it. A link that leads elsewhere,
 * and what is not a regular file, is an issue of its path.
 *
 * A path that the user names, such as a folder of manifests or a dataset, may be anywhere. If it is inside of the project by
 * its name, it must really be there.
 */
import { randomUUID } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import type { Stats } from 'node:fs';
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { messageOf } from '../../src/domain/errors.ts';
import { visible } from '../terminal/visible.ts';
import { PROJECT_ROOT } from './folders.ts';

/** Why a path is not used. The message does not have the path. */
export class PathIssue extends Error {}

/** Real paths of the folders that paths may lead to. */
export type Bounds = readonly string[];

/** @param folders those that do not exist are left out */
export function boundsOf(...folders: readonly string[]): Bounds {
  return folders.flatMap((folder) => {
    try {
      return [realpathSync.native(folder)];
    } catch {
      return [];
    }
  });
}

/** Whether a path is a folder or below it, by their names. */
export function isWithin(folder: string, path: string): boolean {
  const inside = relative(folder, path);
  return !(inside === '..' || inside.startsWith(`..${sep}`) || isAbsolute(inside));
}

/** @throws PathIssue for a path that leads out of the bounds, to itself, or nowhere */
export function realPathIn(bounds: Bounds, path: string): string {
  const real = attempt(() => realpathSync.native(path));
  if (bounds.some((folder) => isWithin(folder, real))) return real;
  throw new PathIssue(`its real path ${visible(real)} is outside of the project`);
}

/**
 * Reads a regular file. Never waits for a pipe or a device.
 *
 * @param most the bytes that are read
 * @returns the size of the file, and its first bytes
 * @throws PathIssue for another path, and for a file that cannot be read
 */
export function readFileIn(
  bounds: Bounds,
  path: string,
  most: number,
): { readonly size: number; readonly bytes: Buffer } {
  const real = realPathIn(bounds, path);
  return attempt(() => {
    requireFile(lstatSync(real));
    const file = openSync(real, constants.O_RDONLY | NO_FOLLOW | NON_BLOCKING);
    try {
      const opened = fstatSync(file);
      requireFile(opened);
      // Another program can have replaced a folder of the path by a link.
      const now = lstatSync(realPathIn(bounds, path));
      if (now.ino !== opened.ino || now.dev !== opened.dev) throw new PathIssue('changes while it is read');
      const bytes = Buffer.alloc(Math.min(opened.size, most));
      let length = 0;
      for (let read = -1; length < bytes.length && read !== 0; length += read) {
        read = readSync(file, bytes, length, bytes.length - length, null);
      }
      return { size: opened.size, bytes: bytes.subarray(0, length) };
    } finally {
      closeSync(file);
    }
  });
}

/** The text of a file of the project; null if there is none. @throws Error with the path for a link that leads elsewhere */
export function projectText(root: string, file: string): string | null {
  const path = join(root, file);
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return null;
  return withPath(file, () => readFileIn(boundsOf(root), path, TEXT_BYTES).bytes.toString('utf8'));
}

/** The real path of a file of the project. @throws Error with the path for a link that leads elsewhere */
export function projectFile(root: string, file: string): string {
  return withPath(file, () => realPathIn(boundsOf(root), join(root, file)));
}

/**
 * Writes a file of the project: another file replaces it, so that no link is followed and a reader sees a whole file.
 *
 * @throws Error with the path for a link that leads elsewhere
 */
export function writeProjectFile(root: string, file: string, text: string): void {
  withPath(file, () => replaceIn(boundsOf(root), join(root, file), text));
}

/** Replaces a file, or the link at this path. @param mode of the new file */
export function replaceFile(path: string, text: string, mode?: number): void {
  const part = join(dirname(path), `.${basename(path)}.${randomUUID()}.part`);
  try {
    writeFileSync(part, text, { flag: 'wx', ...(mode === undefined ? {} : { mode }) });
    renameSync(part, path);
  } finally {
    rmSync(part, { force: true });
  }
}

/** Checks a path that the user names and that is read. @throws PathIssue */
export function requireReadable(path: string): void {
  if (attempt(() => lstatSync(path, { throwIfNoEntry: false })) === undefined) throw new PathIssue('no such file');
  const bounds = boundsOfNamed(path);
  if (bounds === null) return;
  const stat = attempt(() => statSync(realPathIn(bounds, path)));
  if (!stat.isDirectory()) requireFile(stat);
}

/** Checks a path that the user names and that is written; it may be absent. @throws PathIssue */
export function requireTarget(path: string): void {
  const bounds = boundsOfNamed(path);
  if (bounds !== null) targetIn(bounds, path);
}

/** Makes a folder that the user names, for this user only. @throws Error with the path for a link out of the project */
export function makeNamedFolder(path: string): void {
  const bounds = boundsOfNamed(path);
  let known = resolve(path);
  while (lstatSync(known, { throwIfNoEntry: false }) === undefined) known = dirname(known);
  withPath(path, () => bounds !== null && realPathIn(bounds, known));
  mkdirSync(path, { recursive: true, mode: 0o700 });
}

/** Adds to the end of a file, or makes it, for this user only. A link is not followed. @throws Error of the file system */
export function appendLine(path: string, line: string): void {
  const file = openSync(path, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | NO_FOLLOW, PRIVATE);
  try {
    writeFileSync(file, line);
  } finally {
    closeSync(file);
  }
}

/**
 * Checks a folder of the project that programs write to: neither it nor a link in it leads out of the project. A folder
 * elsewhere is the user's choice.
 *
 * @param skipped a folder in it whose links are not followed
 * @throws Error with the path
 */
export function requireOwnFolder(folder: string, skipped: string): void {
  const bounds = boundsOfNamed(folder);
  if (bounds === null || lstatSync(folder, { throwIfNoEntry: false }) === undefined) return;
  const check = (path: string): void => {
    withPath(path, () => realPathIn(bounds, path));
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      const inside = join(path, entry.name);
      if (entry.isSymbolicLink()) withPath(inside, () => realPathIn(bounds, inside));
      else if (entry.isDirectory() && inside !== join(folder, skipped)) check(inside);
    }
  };
  check(folder);
}

/** Writes a file that the user names, such as `--out report.json`; a new one is for this user only. @throws PathIssue */
export function writeNamed(path: string, text: string): void {
  const bounds = boundsOfNamed(path);
  if (bounds === null) writeFileSync(path, text, { mode: PRIVATE });
  else replaceIn(bounds, path, text, PRIVATE);
}

/** Null for a path that is not in the project: its place is the user's choice. */
function boundsOfNamed(path: string): Bounds | null {
  const bounds = boundsOf(PROJECT_ROOT);
  const [folder] = boundsOf(dirname(resolve(path)));
  const isOurs = (one: string | undefined): boolean => one !== undefined && bounds.some((root) => isWithin(root, one));
  return isWithin(PROJECT_ROOT, resolve(path)) || isOurs(folder) ? bounds : null;
}

/** @param mode of a new file; another one keeps its mode */
function replaceIn(bounds: Bounds, path: string, text: string, mode?: number): void {
  const target = targetIn(bounds, path);
  const known = lstatSync(target, { throwIfNoEntry: false });
  replaceFile(target, text, known === undefined ? mode : known.mode & PERMISSIONS);
}

/** The real path of a file that may be absent. */
function targetIn(bounds: Bounds, path: string): string {
  if (attempt(() => lstatSync(path, { throwIfNoEntry: false })) === undefined) {
    return join(realPathIn(bounds, dirname(path)), basename(path));
  }
  const real = realPathIn(bounds, path);
  requireFile(lstatSync(real));
  return real;
}

function requireFile(stat: Stats): void {
  if (!stat.isFile()) throw new PathIssue(`is not a file but a ${kindOf(stat)}`);
}

function kindOf(stat: Stats): string {
  if (stat.isDirectory()) return 'folder';
  if (stat.isFIFO()) return 'pipe';
  return stat.isSocket() ? 'socket' : 'device';
}

function attempt<T>(act: () => T): T {
  try {
    return act();
  } catch (fault) {
    if (fault instanceof PathIssue) throw fault;
    const code = fault instanceof Error && 'code' in fault ? String(fault.code) : '';
    throw new PathIssue(REASONS.get(code) ?? `cannot be read: ${messageOf(fault)}`, { cause: fault });
  }
}

function withPath<T>(file: string, act: () => T): T {
  try {
    return act();
  } catch (fault) {
    throw fault instanceof PathIssue ? new Error(`${file}: ${fault.message}`, { cause: fault }) : fault;
  }
}

const REASONS: ReadonlyMap<string, string> = new Map([
  ['ELOOP', 'is a link that leads to itself'],
  ['ENOENT', 'leads to nothing'],
  ['EACCES', 'cannot be read: permission denied'],
]);

/** Windows has neither. */
const NO_FOLLOW = constants.O_NOFOLLOW ?? 0;
const NON_BLOCKING = constants.O_NONBLOCK ?? 0;
const PERMISSIONS = 0o777;
/** Of a file with what people wrote. */
const PRIVATE = 0o600;
/** Of settings, configurations and generated modules. */
const TEXT_BYTES = 67_108_864;
