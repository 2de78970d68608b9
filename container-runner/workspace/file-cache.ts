/**
 * The cache of files of workspaces (C7): bytes by their SHA-256, on disk, a folder per session. The session's object has
 * the truth, so every file may be missing, and is then sent again.
 *
 * Owns: the folder `workspaces/` of the state folder. Does not own: paths of files, which only jobs know.
 * Invariants:
 * 1. A session reaches only its own folder, whose name is a hash of its id; the name of a file is the hash of its bytes.
 * 2. A file appears under its name complete, by a rename. After a crash of the machine it may still be damaged, so:
 * 3. A file is used only if its bytes have its hash. It is read once for this check, and again after it was changed or the
 *    runner was restarted. A damaged file is removed and counts as missing.
 * 4. Pinned files, which a queued or running job uses, are never pruned.
 * 5. After each stored file, the cache of its session and the whole cache are within their limits, apart from pinned files.
 */
import { createHash, randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';

import { limits } from '../limits.ts';
import type { StateFolder } from '../state.ts';
import { type CachedFile, type CachedSession, countedBytes, loadSessions, SHA256 } from './cache-folder.ts';
import { type IncomingFile, receiveFile } from './incoming-file.ts';
import { signatureOf, verify } from './verify-file.ts';

const FOLDER = 'workspaces';
/** Files in progress; they are removed at the start. */
const SCRATCH = '.incoming';
/** Pruning goes on to this share of a limit, so that it is rare. */
const PRUNED_TO = 0.9;

export interface CacheLimits {
  readonly bytes: number;
  readonly sessionBytes: number;
}

export interface OpenedFile {
  readonly handle: fs.promises.FileHandle;
  readonly size: number;
}

export class FileCache {
  readonly #root: string;
  readonly #now: () => number;
  readonly #limits: CacheLimits;
  /** By the name of their folder, the least recently used first. */
  readonly #sessions: Map<string, CachedSession>;
  /** How many jobs use a file, by folder and hash. A session with a job has an entry, even if it is empty. */
  readonly #pins = new Map<string, Map<string, number>>();
  #bytes = 0;

  /**
   * Opens the cache of a state folder, with the files of an earlier runner.
   *
   * @param now epoch milliseconds
   * @throws Error of the file system if its folder cannot be created or read
   */
  constructor(
    state: StateFolder,
    now: () => number,
    { bytes, sessionBytes }: CacheLimits = {
      bytes: limits.workspaceCacheBytes,
      sessionBytes: limits.workspaceSessionCacheBytes,
    },
  ) {
    this.#now = now;
    this.#limits = { bytes, sessionBytes };
    state.requireFolder(FOLDER);
    this.#root = state.file(FOLDER);
    fs.rmSync(path.join(this.#root, SCRATCH), { recursive: true, force: true });
    fs.mkdirSync(path.join(this.#root, SCRATCH), { recursive: true, mode: 0o700 });
    this.#sessions = loadSessions(this.#root, now());
    for (const { bytes } of this.#sessions.values()) this.#bytes += bytes;
    this.prune();
  }

  /** What all files count; at least `limits.workspaceCacheFileBytes` each. */
  get sizeBytes(): number {
    return this.#bytes;
  }

  /** A new path for a file in progress; its owner removes it. */
  scratch(): string {
    return path.join(this.#root, SCRATCH, randomUUID());
  }

  /** Where a file is, or would be. The bytes there are those of the hash only after `has`. */
  path(session: string, sha256: string): string {
    if (!SHA256.test(sha256)) throw new Error('A cached file is named by its SHA-256');
    return path.join(this.#root, folderOf(session), sha256);
  }

  /**
   * Stores the bytes of a stream, which is read to its end or destroyed.
   *
   * @param maxBytes what the stream may have
   * @returns null, and nothing is stored: the stream is longer
   * @throws Error of the stream or the file system; nothing is stored
   */
  async put(
    session: string,
    bytes: AsyncIterable<Uint8Array>,
    maxBytes: number,
  ): Promise<{ readonly sha256: string; readonly size: number } | null> {
    const incoming = await receiveFile(bytes, this.scratch(), maxBytes);
    if (incoming === null) return null;
    if (await this.has(session, incoming.sha256)) {
      if (typeof incoming.content === 'string') fs.rmSync(incoming.content, { force: true });
      this.touch(session);
    } else this.#keep(session, incoming);
    return { sha256: incoming.sha256, size: incoming.size };
  }

  /** Whether a file is here; checks its bytes if they may have changed. */
  async has(session: string, sha256: string): Promise<boolean> {
    return (await this.size(session, sha256)) !== null;
  }

  /** The size of a file; null if it is missing or damaged. Marks it as used. */
  async size(session: string, sha256: string): Promise<number | null> {
    const file = this.#sessions.get(folderOf(session))?.files.get(sha256);
    if (file === undefined) return null;
    const known = this.path(session, sha256);
    if (file.signature === null || signatureOf(known) !== file.signature) {
      const checked = await verify(known, sha256, this.#now());
      if (checked === null) {
        this.#drop(session, sha256, file);
        return null;
      }
      file.signature = checked.signature;
    }
    const files = this.#sessions.get(folderOf(session))?.files;
    // removed meanwhile
    if (files?.get(sha256) !== file) return null;
    files.delete(sha256);
    files.set(sha256, file);
    return file.size;
  }

  /** Opens a file for reading, checked like `has`; null if it is missing or damaged. The caller closes it. */
  async open(session: string, sha256: string): Promise<OpenedFile | null> {
    const size = await this.size(session, sha256);
    if (size === null) return null;
    // pruned meanwhile
    const handle = await fs.promises.open(this.path(session, sha256)).catch(() => null);
    return handle === null ? null : { handle, size };
  }

  /** Records that a session uses its files. */
  touch(session: string): void {
    const folder = folderOf(session);
    const known = this.#sessions.get(folder);
    if (known === undefined) return;
    known.usedAt = this.#now();
    this.#sessions.delete(folder);
    this.#sessions.set(folder, known);
    try {
      // for the next runner
      fs.utimesSync(path.join(this.#root, folder), known.usedAt / 1_000, known.usedAt / 1_000);
    } catch {
      // then its last stored file counts
    }
  }

  /** Keeps files, present or not, from being pruned, and their session from expiring. @returns ends it; idempotent */
  pin(session: string, hashes: readonly string[]): () => void {
    const folder = folderOf(session);
    const pins = this.#pins.get(folder) ?? new Map<string, number>();
    this.#pins.set(folder, pins);
    // the session itself
    const pinned = [...new Set(hashes), ''];
    for (const hash of pinned) pins.set(hash, (pins.get(hash) ?? 0) + 1);
    this.touch(session);
    return () => {
      for (const hash of pinned.splice(0)) {
        const left = (pins.get(hash) ?? 1) - 1;
        if (left > 0) pins.set(hash, left);
        else pins.delete(hash);
      }
      if (pins.size === 0 && this.#pins.get(folder) === pins) {
        this.#pins.delete(folder);
        this.touch(session);
      }
    };
  }

  /** Removes all files of a session. */
  remove(session: string): void {
    this.#removeFolder(folderOf(session));
  }

  /** Removes sessions that were not used for `limits.workspaceCacheMs`, and what exceeds the limit of the cache. */
  prune(): void {
    const before = this.#now() - limits.workspaceCacheMs;
    for (const [folder, { usedAt }] of this.#sessions) {
      if (usedAt < before && !this.#pins.has(folder)) this.#removeFolder(folder);
    }
    if (this.#bytes <= this.#limits.bytes) return;
    const aim = this.#limits.bytes * PRUNED_TO;
    const newest = [...this.#sessions.keys()].at(-1);
    for (const [folder, session] of this.#sessions) {
      if (this.#bytes <= aim) return;
      if (this.#pins.has(folder) || folder === newest) {
        this.#shrink(folder, session, session.bytes - (this.#bytes - aim));
      } else this.#removeFolder(folder);
    }
  }

  #keep(session: string, { sha256, size, content }: IncomingFile): void {
    const folder = folderOf(session);
    const directory = path.join(this.#root, folder);
    const scratch = typeof content === 'string' ? content : this.scratch();
    try {
      if (typeof content !== 'string') fs.writeFileSync(scratch, content, { flag: 'wx', mode: 0o600 });
      fs.mkdirSync(directory, { mode: 0o700, recursive: true });
      fs.renameSync(scratch, path.join(directory, sha256));
    } catch (fault) {
      fs.rmSync(scratch, { force: true });
      throw fault;
    }
    const cached = this.#sessions.get(folder) ?? { files: new Map<string, CachedFile>(), bytes: 0, usedAt: 0 };
    this.#sessions.set(folder, cached);
    const counted = countedBytes(size);
    if (!cached.files.has(sha256)) {
      cached.bytes += counted;
      this.#bytes += counted;
    }
    cached.files.set(sha256, { size, signature: null });
    this.touch(session);
    if (cached.bytes > this.#limits.sessionBytes) this.#shrink(folder, cached, this.#limits.sessionBytes * PRUNED_TO);
    if (this.#bytes > this.#limits.bytes) this.prune();
  }

  /** Removes the least recently used files that are not pinned, except the last one. */
  #shrink(folder: string, session: CachedSession, aim: number): void {
    const pins = this.#pins.get(folder);
    const newest = [...session.files.keys()].at(-1);
    for (const [sha256, file] of session.files) {
      if (session.bytes <= aim) return;
      if (pins?.has(sha256) === true || sha256 === newest) continue;
      fs.rmSync(path.join(this.#root, folder, sha256), { force: true });
      this.#forget(session, sha256, file);
    }
  }

  #drop(session: string, sha256: string, file: CachedFile): void {
    const cached = this.#sessions.get(folderOf(session));
    // replaced meanwhile
    if (cached?.files.get(sha256) !== file) return;
    fs.rmSync(this.path(session, sha256), { recursive: true, force: true });
    this.#forget(cached, sha256, file);
  }

  #forget(session: CachedSession, sha256: string, file: CachedFile): void {
    if (!session.files.delete(sha256)) return;
    session.bytes -= countedBytes(file.size);
    this.#bytes -= countedBytes(file.size);
  }

  /** The folder loses its name at once; its files are deleted later. */
  #removeFolder(folder: string): void {
    this.#bytes -= this.#sessions.get(folder)?.bytes ?? 0;
    this.#sessions.delete(folder);
    const doomed = this.scratch();
    try {
      fs.renameSync(path.join(this.#root, folder), doomed);
    } catch {
      // it was never created
      return;
    }
    // what remains is removed at the next start
    fs.rm(doomed, { recursive: true, force: true }, () => undefined);
  }
}

function folderOf(session: string): string {
  return createHash('sha256').update(session).digest('hex');
}
