/**
 * The bytes of a session's files, of its messages (C2) and of its workspace (C7): where they go, and how they come back.
 *
 * Small files, and all files without object storage, are stored in the session's database. Large ones are put into the
 * object storage before anything refers to them: the row of the object, the object, then the run or the commit.
 *
 * Owns the order of these writes, and the deletion of bytes without a holder. Does not own the rows (journal/blobs.ts),
 * the checks of a message (session.ts), the paths of the workspace (session-workspace.ts), or the objects of deleted
 * sessions (durable/).
 *
 * Invariants:
 *  1. A run exists with all of its files, or neither does.
 *  2. The row of an object is durable before the object is put, and remains until it is deleted.
 *  3. Bytes that a message or a commit is about to have, or that an action reads, are not deleted. While an object is being
 *     deleted, by this host or by an earlier one, the same bytes are stored in the database.
 *  4. Nothing is written after the session was closed: its database may be that of another session (T5).
 */
import type { MessageContent } from '../../domain/content.ts';
import { filesOfContent } from '../../domain/content.ts';
import { EngineError, unknownSession } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import type { BlobStore, ObjectStore } from '../../domain/ports/storage.ts';
import type { Clock } from '../../domain/ports/clock.ts';
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
  /** Number of messages, commits and actions that need these bytes. */
  readonly #held = new Map<string, number>();
  /** Number of messages whose files are being put. */
  #staging = 0;
  /** After a failure of the object storage, and if some are held: those remain. */
  #retryAt = 0;
  #rowsRetryAt = 0;

  constructor(ports: FilesPorts) {
    this.#ports = ports;
    this.#journal = ports.journal;
    this.#objects = ports.objects === null ? null : boundedObjects(ports.objects, ports.clock);
  }

  /** The bytes of a message's file. @throws EngineError `storage_unavailable` */
  async get(sha256: string): Promise<Uint8Array | null> {
    return this.#journal.blobs.file(sha256) === null ? null : await this.read(sha256);
  }

  /** The bytes of any file that is held, or for which `hold` was called. @throws EngineError `storage_unavailable` */
  async read(sha256: string): Promise<Uint8Array | null> {
    const place = this.#journal.blobs.placeOf(sha256);
    if (place === null) return null;
    // An empty file has no rows.
    if (place === 'rows') return this.#journal.blobs.get(sha256) ?? new Uint8Array();
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
    const release = this.hold(hashes);
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

  // --- the workspace ---

  /** Keeps bytes readable until the returned function is called, also if they lose their last holder meanwhile. */
  hold(hashes: ReadonlySet<string>): () => void {
    for (const sha256 of hashes) this.#held.set(sha256, (this.#held.get(sha256) ?? 0) + 1);
    return () => {
      for (const sha256 of hashes) {
        const left = (this.#held.get(sha256) ?? 1) - 1;
        if (left > 0) this.#held.set(sha256, left);
        else this.#held.delete(sha256);
      }
      try {
        this.#dropRows(hashes);
      } catch {
        // What needed them has succeeded or failed by itself; `collect` drops them later.
      }
    };
  }

  /**
   * Stores bytes for a commit, which must hold them.
   *
   * @throws EngineError `session_full`, `storage_unavailable`
   */
  async store(sha256: string, bytes: Uint8Array): Promise<void> {
    const { blobs } = this.#journal;
    if (blobs.has(sha256)) return;
    const now = this.#ports.clock.now();
    if (this.#large(new Map([[sha256, bytes]])).length === 0) {
      if (!this.#journal.hasRoomFor(bytes.length)) {
        throw new EngineError('session_full', sessionFull('stores no further files'));
      }
      this.#journal.atomically(() => blobs.stage(sha256, bytes, now));
      return;
    }
    if (blobs.objectBytes + bytes.length > limits.sessionObjectBytes) {
      throw new EngineError('session_full', sessionFull('stores no further files', limits.sessionObjectBytes));
    }
    blobs.announce(sha256, bytes.length, { name: null, mediaType: null }, now);
    const put = this.#put([[sha256, bytes]]);
    this.#ports.hold(put.catch(() => undefined));
    await put;
  }

  /** The workspace no longer has these bytes. In the transaction in which it gave them up. */
  released(hashes: ReadonlySet<string>): void {
    const now = this.#ports.clock.now();
    for (const sha256 of hashes)
      this.#journal.blobs.release(sha256, now + limits.releasedFileMs - limits.unreferredFileMs);
    this.#dropRows(hashes);
  }

  #dropRows(hashes: ReadonlySet<string>): void {
    if (this.#ports.isGone()) return;
    for (const sha256 of hashes) if (!this.#held.has(sha256)) this.#journal.blobs.dropRows(sha256);
  }

  // --- bytes without a holder ---

  /** When `collect` has something to do, epoch milliseconds. */
  get collectsAt(): number {
    return Math.min(this.#rowsCollectAt, this.#objectsCollectAt);
  }

  get #rowsCollectAt(): number {
    const oldest = this.#journal.blobs.oldestUnreferred('rows');
    return oldest === null ? Infinity : Math.max(oldest + limits.unreferredFileMs, this.#rowsRetryAt);
  }

  get #objectsCollectAt(): number {
    const oldest = this.#objects === null ? null : this.#journal.blobs.oldestUnreferred('object');
    return oldest === null ? Infinity : Math.max(oldest + limits.unreferredFileMs, this.#retryAt);
  }

  /**
   * Deletes bytes without a holder: of messages that were never accepted, of commits that a crash cut off, and objects that
   * the workspace has released.
   *
   * @throws EngineError `storage_unavailable`: repeated later
   */
  async collect(): Promise<void> {
    const now = this.#ports.clock.now();
    const { blobs } = this.#journal;
    if (this.#rowsCollectAt <= now) {
      this.#rowsRetryAt = now + limits.objectRetryMs;
      this.#dropRows(new Set(blobs.unreferred('rows', now - limits.unreferredFileMs)));
      await this.#journal.sync();
    }
    if (this.#objects === null || this.#ports.isGone() || this.#objectsCollectAt > now) return;
    const unreferred = blobs.unreferred('object', now - limits.unreferredFileMs);
    const due = unreferred.filter((sha256) => !this.#held.has(sha256));
    this.#retryAt = now + limits.objectRetryMs;
    for (const sha256 of due) blobs.collect(sha256);
    await this.#journal.sync();
    for (const sha256 of due) {
      if (this.#ports.isGone()) return;
      await this.#objects.delete(this.#keyOf(sha256));
      if (this.#ports.isGone()) return;
      blobs.collected(sha256);
    }
    // What a long action holds is due again later.
    if (due.length === unreferred.length) this.#retryAt = 0;
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
    for (let from = 0; from < files.length; from += limits.objectsAtOnce) {
      const some = files.slice(from, from + limits.objectsAtOnce);
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
