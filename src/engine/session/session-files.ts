/**
 * The files of a session's messages: where their bytes go, and how they come back (C2).
 *
 * Small files, and all files without object storage, are stored in the session's database with the run. Large ones are
 * put into the object storage before the run is created: the row of the object, the object, then the run.
 *
 * Owns the order of these writes, and the deletion of objects that no message has. Does not own the rows
 * (journal/blobs.ts), the checks of a message (session.ts), or the objects of deleted sessions (durable/).
 *
 * Invariants:
 *  1. A run exists with all of its files, or neither does.
 *  2. The row of an object is durable before the object is put, and remains until it is deleted.
 *  3. An object that a message is about to have is not deleted. While an object is being deleted, by this host or by an
 *     earlier one, a message with the same bytes stores them in the database.
 *  4. Nothing is written after the session was closed: its database may be that of another session (T5).
 */
import type { MessageContent } from '../../domain/content.ts';
import { filesOfContent } from '../../domain/content.ts';
import { EngineError, unknownSession } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import type { BlobStore, Clock, ObjectStore } from '../../domain/ports.ts';
import type { SessionIdentity } from '../../domain/session.ts';
import type { FileAbout } from '../../journal/blobs.ts';
import type { Journal } from '../../journal/journal.ts';
import { boundedObjects } from './bounded-objects.ts';
import { sessionFull } from './session-full.ts';

/** The bytes of files by their SHA-256. */
export type FileBytes = ReadonlyMap<string, Uint8Array>;

export const NO_FILES: FileBytes = new Map();

/** Objects that are put, and that no message has yet. `release` must be called in the end. */
export interface StagedFiles {
  readonly hashes: ReadonlySet<string>;
  release(): void;
}

export const NOTHING_STAGED: StagedFiles = { hashes: new Set(), release: () => undefined };

/** All objects of a session have keys with this prefix, and no object of another incarnation has (T5). */
export function objectPrefix({ session_id: id, incarnation = '0' }: SessionIdentity): string {
  return `sessions/${id}/${incarnation}/`;
}

interface FilesPorts {
  readonly journal: Journal;
  readonly clock: Clock;
  readonly objects: ObjectStore | null;
  /** Keeps the host alive, and arms its alarm in the same turn. */
  readonly hold: (work: Promise<unknown>) => void;
  /** Whether the session is closed. */
  readonly isGone: () => boolean;
}

export class SessionFiles implements BlobStore {
  readonly #ports: FilesPorts;
  readonly #journal: Journal;
  readonly #objects: ObjectStore | null;
  /** Number of messages that are about to have an object. */
  readonly #held = new Map<string, number>();
  /** Number of messages whose files are being put. */
  #staging = 0;
  /** After a failure of the object storage. */
  #retryAt = 0;

  constructor(ports: FilesPorts) {
    this.#ports = ports;
    this.#journal = ports.journal;
    this.#objects = ports.objects === null ? null : boundedObjects(ports.objects, ports.clock);
  }

  /** @throws EngineError `storage_unavailable` */
  async get(sha256: string): Promise<Uint8Array | null> {
    const file = this.#journal.blobs.file(sha256);
    if (file?.place !== 'object') return file === null ? null : this.#journal.blobs.get(sha256);
    return (await this.#objects?.get(this.#keyOf(sha256))) ?? null;
  }

  /** Whether some of these files must be put into the object storage before their message is accepted. */
  needsStage(files: FileBytes): boolean {
    return this.#large(files).length > 0;
  }

  /** Bytes of the files that `commit` adds to the database. */
  rowBytes(files: FileBytes): number {
    const large = new Set(this.#large(files).map(([sha256]) => sha256));
    let bytes = 0;
    for (const [sha256, { length }] of files) {
      if (!large.has(sha256) && !this.#journal.blobs.has(sha256)) bytes += length;
    }
    return bytes;
  }

  /**
   * Puts the large files of a message into the object storage.
   *
   * @throws EngineError `queue_full`, `session_full`, `storage_unavailable`: then no message has them, and they are deleted later
   */
  async stage(files: FileBytes, content: MessageContent): Promise<StagedFiles> {
    const large = this.#large(files);
    const { blobs } = this.#journal;
    const bytes = large.reduce((sum, [, { length }]) => sum + length, 0);
    if (blobs.objectBytes + bytes > limits.sessionObjectBytes) {
      throw new EngineError('session_full', sessionFull('accepts no further files', limits.sessionObjectBytes));
    }
    if (this.#staging >= limits.stagedMessages) {
      const message = `The files of ${limits.stagedMessages} messages of this session are already being stored`;
      throw new EngineError('queue_full', message);
    }
    const about = aboutOf([content]);
    const now = this.#ports.clock.now();
    this.#journal.atomically(() => {
      for (const [sha256, { length }] of large) blobs.announce(sha256, length, about(sha256), now);
    });
    const hashes = new Set(large.map(([sha256]) => sha256));
    for (const sha256 of hashes) this.#held.set(sha256, (this.#held.get(sha256) ?? 0) + 1);
    const release = (): void => {
      for (const sha256 of hashes) {
        const left = (this.#held.get(sha256) ?? 1) - 1;
        if (left === 0) this.#held.delete(sha256);
        else this.#held.set(sha256, left);
      }
    };
    this.#staging += 1;
    const work = this.#put(large).finally(() => {
      this.#staging -= 1;
    });
    this.#ports.hold(work.catch(() => undefined));
    try {
      await work;
    } catch (fault) {
      release();
      throw fault;
    }
    return { hashes, release };
  }

  /**
   * Refers to the staged files, and stores the others in the database. In the transaction with what has them.
   *
   * @param contents the messages with the files, in order
   */
  commit(files: FileBytes, contents: readonly MessageContent[], { hashes }: StagedFiles): void {
    if (files.size === 0) return;
    const about = aboutOf(contents);
    const { blobs } = this.#journal;
    for (const [sha256, bytes] of files) {
      if (hashes.has(sha256)) blobs.refer(sha256);
      else blobs.put(sha256, bytes, about(sha256));
    }
  }

  /** When `collect` has something to do, epoch milliseconds. */
  get collectsAt(): number {
    const oldest = this.#objects === null ? null : this.#journal.blobs.oldestUnreferred;
    return oldest === null ? Infinity : Math.max(oldest + limits.unreferredFileMs, this.#retryAt);
  }

  /** Deletes objects whose messages were never accepted. @throws EngineError `storage_unavailable`: repeated later */
  async collect(): Promise<void> {
    const now = this.#ports.clock.now();
    if (this.#objects === null || this.collectsAt > now) return;
    const { blobs } = this.#journal;
    // What is held is older than this only if the object storage hangs.
    const due = blobs.unreferred(now - limits.unreferredFileMs).filter((sha256) => !this.#held.has(sha256));
    this.#retryAt = now + limits.objectRetryMs;
    for (const sha256 of due) blobs.collect(sha256);
    await this.#journal.sync();
    for (const sha256 of due) {
      if (this.#ports.isGone()) return;
      await this.#objects.delete(this.#keyOf(sha256));
      if (this.#ports.isGone()) return;
      blobs.collected(sha256);
    }
    this.#retryAt = 0;
    await this.#journal.sync();
  }

  /** The files that become objects: the large ones that no message has. */
  #large(files: FileBytes): readonly (readonly [string, Uint8Array])[] {
    if (this.#objects === null) return [];
    const { blobs } = this.#journal;
    return [...files].filter(
      ([sha256, { length }]) =>
        length >= limits.objectFileLeastBytes && !blobs.has(sha256) && !blobs.isCollecting(sha256),
    );
  }

  async #put(files: readonly (readonly [string, Uint8Array])[]): Promise<void> {
    // The rows first (invariant 2).
    await this.#journal.sync();
    for (let from = 0; from < files.length; from += limits.objectPutsAtOnce) {
      const some = files.slice(from, from + limits.objectPutsAtOnce);
      const puts = some.map(([sha256, bytes]) => this.#objects?.put(this.#keyOf(sha256), bytes, sha256));
      const failed = (await Promise.allSettled(puts)).find(({ status }) => status === 'rejected');
      if (failed?.status === 'rejected') throw failed.reason;
    }
  }

  #keyOf(sha256: string): string {
    const { record } = this.#journal;
    if (record === null) throw unknownSession();
    return `${objectPrefix(record)}${sha256}`;
  }
}

/** How the messages call the file with a hash first. */
function aboutOf(contents: readonly MessageContent[]): (sha256: string) => FileAbout {
  const known = new Map<string, FileAbout>();
  for (const { sha256, name, media_type: mediaType } of contents.flatMap(filesOfContent)) {
    if (!known.has(sha256)) known.set(sha256, { name, mediaType });
  }
  return (sha256) => known.get(sha256) ?? { name: null, mediaType: null };
}
