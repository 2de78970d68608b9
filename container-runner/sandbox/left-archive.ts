/**
 * Reads what a program left in its workspace (C7): a tar archive that a guest writes, followed by the word `complete`. The
 * program may have taken over its guest, so every byte is hostile.
 *
 * Owns the parser. Does not own limits of files, which the receiver enforces, and the program.
 * Invariants:
 * 1. Without the final word, after an error in the format, and after `abandon`, the receiver never hears `complete`.
 * 2. The number of entries, the bytes between two entries and the time are limited. Memory does not grow with the archive.
 * 3. A guest never waits for a reader: an archive that is not taken is destroyed.
 */
import { PassThrough, type Readable } from 'node:stream';

import { extract, type ExtractEvents, type Header } from 'tar-stream';

import { limits } from '../limits.ts';
import type { EntryKind, LeftEntry, WorkspaceReceiver } from '../workspace/workspace.ts';

type Entry = ExtractEvents['entry'][1];

/** What a guest writes after the archive if it could read everything. */
export const COMPLETE = 'complete';

export interface Collection {
  /** The program was stopped: nothing more is taken. */
  abandon(): void;
  /** The sandbox has ended. Resolves when the receiver has taken the rest of the archive. Never rejects. */
  finish(): Promise<void>;
}

/**
 * Takes an archive.
 *
 * @param archive when it is destroyed, its guest gets an error or its further bytes are discarded
 * @param kill ends the sandbox: the archive takes too long, or the guest does not end after the receiver has said stop
 */
export function collect(archive: Readable, receiver: WorkspaceReceiver, kill: () => void): Collection {
  const reader = extract();
  // errors end the iteration below
  reader.on('error', () => undefined);
  archive.on('error', () => undefined);
  let timer: NodeJS.Timeout | undefined;
  let grace: NodeJS.Timeout | undefined;
  let stopped = false;
  let ended = false;
  /** Bytes that may arrive until the next entry. */
  let budget: number = limits.workspaceHeaderBytes;

  function stop(): void {
    stopped = true;
    // without an error, an iteration that is between two entries would never end
    reader.destroy(new Error('The archive is not taken'));
    archive.destroy();
  }
  /** Nothing of it is kept. The guest ends with the program's exit code, or is killed. */
  function refuse(): void {
    stop();
    if (!ended) grace ??= setTimeout(kill, limits.killGraceMs);
  }
  function onTimeout(): void {
    stop();
    if (!ended) kill();
  }

  /** @returns whether the final word came */
  async function feed(): Promise<boolean> {
    let tail: Buffer = Buffer.alloc(0);
    for await (const chunk of archive as AsyncIterable<Buffer>) {
      timer ??= setTimeout(onTimeout, limits.workspaceCollectMs);
      budget -= chunk.length;
      if (budget < 0) refuse();
      if (stopped) return false;
      const bytes = Buffer.concat([tail, chunk]);
      const cut = Math.max(0, bytes.length - COMPLETE.length);
      tail = bytes.subarray(cut);
      if (cut > 0 && !reader.write(bytes.subarray(0, cut))) await writable(reader);
    }
    reader.end(undefined);
    return tail.toString('latin1') === COMPLETE;
  }

  /** @returns whether the archive was taken to its end */
  async function takeAll(): Promise<boolean> {
    let count = 0;
    for await (const entry of reader) {
      const { header } = entry;
      budget = header.size + limits.workspaceHeaderBytes;
      const left = describe(header);
      if (left === null) {
        entry.resume();
        continue;
      }
      count += 1;
      if (count > limits.workspaceEntries) return false;
      if (!(await give(entry, left, receiver))) return false;
    }
    return true;
  }

  async function take(): Promise<void> {
    const taking = takeAll()
      .catch(() => false)
      .then((all) => {
        if (!all) refuse();
        return all;
      });
    const whole = await feed().catch(() => false);
    if (!whole) stop();
    const all = await taking;
    clearTimeout(timer);
    if (whole && all && !stopped) receiver.complete();
  }
  const done = take().catch(() => undefined);
  return {
    abandon: stop,
    async finish() {
      ended = true;
      clearTimeout(grace);
      await done;
    },
  };
}

/** Waits until the parser takes more, or does not take anything any more. */
function writable(reader: ReturnType<typeof extract>): Promise<void> {
  return new Promise((resolve) => {
    function settle(): void {
      reader.off('drain', settle);
      reader.off('close', settle);
      resolve();
    }
    reader.on('drain', settle);
    reader.on('close', settle);
    if (reader.destroyed) settle();
  });
}

/** Passes one entry to the receiver, and discards what it does not read. */
async function give(entry: Entry, left: LeftEntry, receiver: WorkspaceReceiver): Promise<boolean> {
  if (left.kind !== 'file') {
    entry.resume();
    return await receiver.entry(left, null);
  }
  const bytes = new PassThrough();
  bytes.on('error', () => undefined);
  entry.on('data', (chunk) => {
    if (!bytes.destroyed && !bytes.write(chunk)) entry.pause();
  });
  for (const event of ['drain', 'close']) bytes.on(event, () => entry.resume());
  entry.once('end', () => bytes.end());
  entry.once('close', () => {
    if (!bytes.writableEnded) bytes.destroy(new Error('The archive ended inside of a file'));
  });
  const more = await receiver.entry(left, bytes);
  bytes.destroy();
  return more;
}

const KINDS: Readonly<Partial<Record<string, EntryKind>>> = {
  file: 'file',
  'contiguous-file': 'file',
  directory: 'folder',
  link: 'hardlink',
  symlink: 'symlink',
  'character-device': 'device',
  'block-device': 'device',
  fifo: 'fifo',
};

/** Null for the workspace itself. */
function describe({ name, type, mode, size }: Header): LeftEntry | null {
  const path = name.replace(/^\.\//, '').replace(/\/$/, '');
  if (path === '' || path === '.') return null;
  const kind = KINDS[type] ?? 'unknown';
  const isFile = kind === 'file';
  return { path, kind, executable: isFile && (mode & 0o100) !== 0, size: isFile ? size : 0 };
}
