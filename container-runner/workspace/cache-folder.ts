/** Reads the folder of the cache of files at the start of the runner (C7). */
import fs from 'node:fs';
import path from 'node:path';

import { limits } from '../limits.ts';

/** Lower-case hexadecimal; the name of each file and folder. */
export const SHA256 = /^[0-9a-f]{64}$/;

export interface CachedFile {
  readonly size: number;
  /** State of the file on disk when its hash was last checked; null = not yet. */
  signature: string | null;
}

export interface CachedSession {
  /** The least recently used first. */
  readonly files: Map<string, CachedFile>;
  /** What its files count. */
  bytes: number;
  /** Epoch milliseconds. */
  usedAt: number;
}

/** What a file counts in the limits of the cache. */
export function countedBytes(size: number): number {
  return Math.max(size, limits.workspaceCacheFileBytes);
}

/**
 * The files of an earlier runner, by the name of their session's folder; in both levels the least recently used first.
 * Entries with other names are not part of the cache. What has such a name and is not a file or a folder is removed.
 *
 * @param now epoch milliseconds; times in the future count as now
 */
export function loadSessions(root: string, now: number): Map<string, CachedSession> {
  const found: { readonly folder: string; readonly session: CachedSession }[] = [];
  for (const entry of fs.readdirSync(root, { withFileTypes: true })) {
    if (!SHA256.test(entry.name)) continue;
    const directory = path.join(root, entry.name);
    if (!entry.isDirectory()) {
      fs.rmSync(directory, { force: true });
      continue;
    }
    const stats = fs.statSync(directory, { throwIfNoEntry: false });
    if (stats === undefined) continue;
    const session = { files: filesOf(directory), bytes: 0, usedAt: Math.min(stats.mtimeMs, now) };
    for (const { size } of session.files.values()) session.bytes += countedBytes(size);
    found.push({ folder: entry.name, session });
  }
  found.sort((one, other) => one.session.usedAt - other.session.usedAt);
  return new Map(found.map(({ folder, session }) => [folder, session]));
}

function filesOf(directory: string): Map<string, CachedFile> {
  const files: { readonly name: string; readonly size: number; readonly at: number }[] = [];
  for (const entry of fs.readdirSync(directory, { withFileTypes: true })) {
    if (!SHA256.test(entry.name)) continue;
    const file = path.join(directory, entry.name);
    if (!entry.isFile()) {
      fs.rmSync(file, { recursive: true, force: true });
      continue;
    }
    const stats = fs.statSync(file, { throwIfNoEntry: false });
    if (stats !== undefined) files.push({ name: entry.name, size: stats.size, at: stats.mtimeMs });
  }
  files.sort((one, other) => one.at - other.at);
  return new Map(files.map(({ name, size }) => [name, { size, signature: null }]));
}
