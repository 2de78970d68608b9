/** Sends the files of a workspace into a sandbox, from the disk and without holding all of them in memory (C7). */
import fs from 'node:fs/promises';
import { pipeline, Readable, type Writable } from 'node:stream';

import { tarEnd, tarHeader, tarPadding } from '../guest/tar-writer.ts';
import type { GivenFile } from '../workspace/workspace.ts';

/** Where programs see the files, at every level with a file system of its own. */
export const WORKSPACE = '/workspace' as const;

export type Pieces = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

const PIECE_BYTES = 262_144;
/** Smaller files are read whole, this many at the same time. */
const SMALL_BYTES = 65_536;
const READ_AHEAD = 32;

/** A file of a workspace cannot be read, or has another size. */
class UnreadableFile extends Error {}

/** A file as guests that read raw bytes get it: path, bytes, whether it is executable, seconds. */
export type GuestFile = readonly [path: string, size: number, executable: boolean, modifiedAt: number];

/** The files whose bytes follow, as `contents` gives them. */
export function guestFiles(files: readonly GivenFile[]): GuestFile[] {
  return files.map(({ path, size, executable, modifiedAt }) => [
    path,
    size,
    executable,
    Math.floor(modifiedAt / 1_000),
  ]);
}

/** The bytes of the files, one after another. */
export async function* contents(files: readonly GivenFile[]): AsyncGenerator<Uint8Array> {
  for await (const [, bytes] of read(files)) yield* bytes;
}

/** An archive of texts at the root of the sandbox, and of a workspace; null = the program has none. */
export async function* archiveOf(
  texts: Readonly<Record<string, string>>,
  workspace: readonly GivenFile[] | null,
): AsyncGenerator<Uint8Array> {
  let written = 0;
  const count = (bytes: Uint8Array): Uint8Array => {
    written += bytes.length;
    return bytes;
  };
  const common = { size: 0, modifiedAt: 0 };
  for (const [path, text] of Object.entries(texts)) {
    const bytes = Buffer.from(text);
    yield count(tarHeader({ ...common, path, kind: 'file', mode: 0o444, size: bytes.length }));
    yield count(bytes);
    yield count(tarPadding(bytes.length));
  }
  if (workspace !== null) {
    // without a workspace, the folder is not writable
    const folder = `${WORKSPACE.slice(1)}/`;
    yield count(tarHeader({ ...common, path: folder, kind: 'folder', mode: 0o755 }));
    for await (const [{ path, size, executable, modifiedAt }, pieces] of read(workspace)) {
      const mode = executable ? 0o755 : 0o644;
      yield count(tarHeader({ path: folder + path, kind: 'file', mode, size, modifiedAt }));
      for await (const bytes of pieces) yield count(bytes);
      yield count(tarPadding(size));
    }
  }
  yield tarEnd(written);
}

/**
 * Writes everything to a pipe and closes it. Ignores errors of a closed pipe.
 *
 * @param onUnreadable called if a file cannot be read: the sandbox has incomplete files and must not continue
 */
export function pour(pieces: Pieces, into: unknown, onUnreadable: () => void): void {
  pipeline(Readable.from(joined(pieces)), into as Writable, (fault) => {
    if (fault instanceof UnreadableFile) onUnreadable();
  });
}

/** Joins small pieces, because each write to a pipe has its price. */
async function* joined(pieces: Pieces): AsyncGenerator<Uint8Array> {
  let held: Uint8Array[] = [];
  let size = 0;
  for await (const piece of pieces) {
    held.push(piece);
    size += piece.length;
    if (size < SMALL_BYTES) continue;
    yield held.length === 1 ? piece : Buffer.concat(held);
    held = [];
    size = 0;
  }
  if (size > 0) yield Buffer.concat(held);
}

async function* read(files: readonly GivenFile[]): AsyncGenerator<readonly [file: GivenFile, pieces: Pieces]> {
  for (let at = 0; at < files.length; at += READ_AHEAD) {
    const group = files.slice(at, at + READ_AHEAD);
    const small = await Promise.all(group.map((file) => (file.size <= SMALL_BYTES ? whole(file) : null)));
    for (const [index, file] of group.entries()) yield [file, small[index] ?? bytesOf(file)];
  }
}

async function whole({ path, size, source }: GivenFile): Promise<Pieces> {
  const bytes = await readable(path, fs.readFile(source));
  if (bytes.length !== size) throw new UnreadableFile(`${path} has ${bytes.length} bytes instead of ${size}`);
  return [bytes];
}

async function* bytesOf({ path, size, source }: GivenFile): AsyncGenerator<Uint8Array> {
  const file = await readable(path, fs.open(source));
  try {
    for (let left = size; left > 0;) {
      const piece = Buffer.allocUnsafe(Math.min(left, PIECE_BYTES));
      const { bytesRead } = await readable(path, file.read(piece, 0, piece.length));
      if (bytesRead === 0) throw new UnreadableFile(`${path} has fewer than ${size} bytes`);
      left -= bytesRead;
      yield piece.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

async function readable<T>(path: string, operation: Promise<T>): Promise<T> {
  try {
    return await operation;
  } catch (fault) {
    throw new UnreadableFile(`${path} cannot be read`, { cause: fault });
  }
}
