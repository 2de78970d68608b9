/**
 * A session's object as the target of a fork (C4): it takes the pages from the object of the other session.
 *
 * Owns the mark of an incomplete fork, its deletion, and the size of a complete one. Does not own the pages
 * (engine/session/session-fork.ts), or the notes about earlier sessions of the object: those are kept (C2, C6).
 *
 * Invariants:
 *  1. An incomplete fork is not a session. It is deleted after a failure, and by the alarm after the loss of its host.
 *  2. A fork is made once: while that lasts, further requests wait for the same end.
 *  3. While a fork is incomplete, nothing else deletes the storage, and an alarm is set.
 */
import { limits } from '../domain/limits.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { ObjectStore } from '../domain/ports/storage.ts';
import type { SessionRecord } from '../domain/session.ts';
import { ForkTarget } from '../engine/session/session-fork.ts';
import type { DirectoryNote } from '../engine/session/directory-outbox.ts';
import type { ForkPage } from '../engine/session/session-fork.ts';
import { objectPrefix } from '../engine/session/session-files.ts';
import { Journal } from '../journal/journal.ts';
import type { DeletedFiles } from './deleted-files.ts';
import { durableSql } from './sql-storage.ts';

/** Storage key of the record of an incomplete fork. */
const INCOMPLETE = 'fork';
/** Storage key of the number of messages that a complete fork began with. */
const FORKED = 'forked';

interface ForkParts {
  readonly storage: DurableObjectStorage;
  readonly objects: ObjectStore | null;
  readonly clock: Clock;
  readonly deletedFiles: DeletedFiles;
  /** Stops the writes to the directory. @returns the notes about earlier sessions, which must be kept (C6) */
  readonly closeDirectory: () => readonly DirectoryNote[];
  /** Replaces the session with the one that the storage contains; called at the end, also after a failure. */
  readonly reopen: () => void;
}

/** Sends the pages of the branch; resolves when `take` has taken all of them. */
export type SendFork = (take: (page: ForkPage) => Promise<void>) => Promise<void>;

export class ForkedSession {
  readonly #parts: ForkParts;
  #making: Promise<void> | null = null;
  /** The deletion of an incomplete fork of a lost host. */
  #clearing: Promise<void> | null = null;

  constructor(parts: ForkParts) {
    this.#parts = parts;
  }

  /** Whether a fork is being made, or a lost host has left it. */
  get isIncomplete(): boolean {
    return this.#making !== null || this.#clearing !== null || this.#incomplete() !== undefined;
  }

  /** Until when an alarm must be set, epoch milliseconds; null unless a fork is incomplete. */
  get dueAt(): number | null {
    return this.isIncomplete ? this.#parts.clock.now() + limits.forkMs : null;
  }

  /** The number of messages that the fork began with. */
  get messageCount(): number {
    return this.#parts.storage.kv.get<number>(FORKED) ?? 0;
  }

  /** Makes the fork; if it is being made already, by a request with the same key, waits for its end. */
  async make(record: SessionRecord, send: SendFork): Promise<void> {
    // Whatever its end is: the new fork deletes what is left.
    await this.#clearing?.catch(() => undefined);
    this.#making ??= this.#make(record, send).finally(() => {
      this.#making = null;
      this.#parts.reopen();
    });
    await this.#making;
  }

  /**
   * The alarm: deletes an incomplete fork of a lost host. Sets the alarm again while a fork is being made, which may take
   * longer than `limits.forkMs`.
   */
  async wake(): Promise<void> {
    const { storage, clock } = this.#parts;
    if (this.#making !== null) return await storage.setAlarm(clock.now() + limits.forkMs);
    if (this.#incomplete() === undefined) return;
    this.#clearing ??= this.#clear().finally(() => {
      this.#clearing = null;
      this.#parts.reopen();
    });
    await this.#clearing;
  }

  async #make(record: SessionRecord, send: SendFork): Promise<void> {
    const { storage, objects, clock, closeDirectory } = this.#parts;
    closeDirectory();
    try {
      if (this.#incomplete() !== undefined) await this.#clear();
      storage.kv.put(INCOMPLETE, record);
      await storage.setAlarm(clock.now() + limits.forkMs);
      const journal = new Journal(durableSql(storage));
      const target = new ForkTarget(journal, record, objects);
      await send(async (page) => await target.take(page));
      await target.finish(() => {
        storage.kv.put(FORKED, journal.seeded.count + journal.runs.count * 2);
        storage.kv.delete(INCOMPLETE);
      });
    } catch (fault) {
      await this.#clear();
      throw fault;
    }
  }

  #incomplete(): SessionRecord | undefined {
    return this.#parts.storage.kv.get<SessionRecord>(INCOMPLETE);
  }

  /** What remains are notes: about objects, until the object storage answers, and for the directory. */
  async #clear(): Promise<void> {
    const { storage, objects, clock, deletedFiles, closeDirectory } = this.#parts;
    const record = this.#incomplete();
    const prefix = record === undefined || objects === null ? null : objectPrefix(record);
    const notes = closeDirectory();
    deletedFiles.replaceSession(prefix === null ? null : { prefix, isPending: false }, notes);
    if (deletedFiles.isEmpty && notes.length === 0) {
      // In this order: with its alarm, what could not be deleted is deleted later.
      await storage.deleteAll();
      await storage.deleteAlarm();
    } else await storage.setAlarm(clock.now() + limits.objectRetryMs);
  }
}
