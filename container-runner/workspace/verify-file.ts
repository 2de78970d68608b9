/** Checks that a cached file has the bytes that its name says (C7). */
import { createHash } from 'node:crypto';
import fs from 'node:fs';

/** A file that changed this recently may change again without a new time: file systems count in steps of some milliseconds. */
const RECENT_MS = 100;
const CHUNK_BYTES = 262_144;

/** The state of a file on disk; it differs after every change. Null if the path is not a regular file. */
export function signatureOf(file: string): string | null {
  const stats = fs.lstatSync(file, { bigint: true, throwIfNoEntry: false });
  return stats?.isFile() === true ? textOf(stats) : null;
}

/**
 * Reads a file and compares its hash.
 *
 * @param now epoch milliseconds
 * @returns null if the file is missing or has other bytes. `signature`: its state; null if it may still change
 *   without a new state, so that the next use reads it again
 */
export async function verify(
  file: string,
  sha256: string,
  now: number,
): Promise<{ readonly signature: string | null } | null> {
  let handle: fs.promises.FileHandle;
  try {
    if (fs.lstatSync(file, { throwIfNoEntry: false })?.isFile() !== true) return null;
    handle = await fs.promises.open(file);
  } catch {
    return null;
  }
  try {
    const stats = await handle.stat({ bigint: true });
    const hash = createHash('sha256');
    const buffer = Buffer.alloc(Math.min(CHUNK_BYTES, Number(stats.size) + 1));
    for (;;) {
      const { bytesRead } = await handle.read(buffer);
      if (bytesRead === 0) break;
      hash.update(buffer.subarray(0, bytesRead));
    }
    if (hash.digest('hex') !== sha256) return null;
    const isRecent = now - Number(stats.ctimeMs) < RECENT_MS;
    return { signature: isRecent ? null : textOf(stats) };
  } catch {
    return null;
  } finally {
    await handle.close();
  }
}

function textOf({ dev, ino, size, mtimeNs, ctimeNs }: fs.BigIntStats): string {
  return `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`;
}
