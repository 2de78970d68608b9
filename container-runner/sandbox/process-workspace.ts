/**
 * A workspace as a folder of this machine, for programs without a sandbox (C7). The processes of the job are gone when its
 * files are read. A process that escaped could still exchange names for links, so the last name is opened without
 * following links and without waiting; more than that is not possible without a sandbox.
 */
import { constants, createReadStream, type Stats } from 'node:fs';
import fs from 'node:fs/promises';
import path from 'node:path';

import { limits } from '../limits.ts';
import type { EntryKind, GivenFile, LeftEntry, WorkspaceReceiver } from '../workspace/workspace.ts';

/** Files that are copied at the same time. */
const AT_ONCE = 32;

/** Creates the folder with its files. @throws Error if a file cannot be read */
export async function fillFolder(folder: string, files: readonly GivenFile[]): Promise<void> {
  for (const place of new Set([folder, ...files.map(({ path: name }) => path.dirname(path.join(folder, name)))])) {
    await fs.mkdir(place, { recursive: true });
  }
  async function fill({ path: name, source, executable, modifiedAt }: GivenFile): Promise<void> {
    const place = path.join(folder, name);
    await fs.copyFile(source, place);
    await fs.chmod(place, executable ? 0o755 : 0o644);
    const seconds = Math.floor(modifiedAt / 1_000);
    await fs.utimes(place, seconds, seconds);
  }
  for (let at = 0; at < files.length; at += AT_ONCE) await Promise.all(files.slice(at, at + AT_ONCE).map(fill));
}

/** Passes all entries of the folder to the receiver. Without an error and before `stop`, ends with `complete`. */
export async function leaveFolder(folder: string, receiver: WorkspaceReceiver, stop: AbortSignal): Promise<void> {
  const end = AbortSignal.any([stop, AbortSignal.timeout(limits.workspaceCollectMs)]);
  try {
    if (await leaveAll(folder, receiver, end)) receiver.complete();
  } catch {
    // incomplete, which the receiver sees
  }
}

async function leaveAll(root: string, receiver: WorkspaceReceiver, end: AbortSignal): Promise<boolean> {
  const known = await fs.lstat(root).catch(() => null);
  // the program may have removed the folder, or put something else in its place
  if (known === null) return true;
  if (!known.isDirectory()) return false;
  let count = 0;
  const folders = [''];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const place = path.join(root, folder);
    await fs.chmod(place, 0o755);
    for (const name of await fs.readdir(place)) {
      count += 1;
      if (end.aborted || count > limits.workspaceEntries) return false;
      const entry = folder === '' ? name : `${folder}/${name}`;
      const stats = await fs.lstat(path.join(root, entry));
      if (stats.isDirectory()) folders.push(entry);
      if (!(await leave(path.join(root, entry), entry, stats, receiver, end))) return false;
    }
  }
  return !end.aborted;
}

async function leave(
  place: string,
  entry: string,
  stats: Stats,
  receiver: WorkspaceReceiver,
  end: AbortSignal,
): Promise<boolean> {
  const kind = kindOf(stats);
  const executable = kind === 'file' && (stats.mode & 0o100) !== 0;
  const left: LeftEntry = { path: entry, kind, executable, size: kind === 'file' ? stats.size : 0 };
  if (kind !== 'file') return await receiver.entry(left, null);
  if ((stats.mode & 0o400) === 0) await fs.chmod(place, 0o600);
  const file = await fs.open(place, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const opened = await file.stat();
    if (!opened.isFile() || opened.ino !== stats.ino || opened.dev !== stats.dev) return false;
    const bytes = createReadStream('', { fd: file, autoClose: false, signal: end });
    bytes.on('error', () => undefined);
    return await receiver.entry(left, bytes);
  } finally {
    await file.close();
  }
}

function kindOf(stats: Stats): EntryKind {
  if (stats.isFile()) return 'file';
  if (stats.isDirectory()) return 'folder';
  if (stats.isSymbolicLink()) return 'symlink';
  if (stats.isFIFO()) return 'fifo';
  if (stats.isSocket()) return 'socket';
  return stats.isBlockDevice() || stats.isCharacterDevice() ? 'device' : 'unknown';
}
