/**
 * A session's object as the target of a fork (C4): it takes the pages from the object of the other session.
 *
 * Owns the mark of an incomplete fork, and its deletion. Does not own the pages (engine/session/session-fork.ts).
 *
 * Invariant: an incomplete fork is not a session. It is deleted after a failure, and by the alarm after the loss of its host.
 */
import { EngineError } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';
import type { Clock, ObjectStore } from '../domain/ports.ts';
import type { SessionRecord } from '../domain/session.ts';
import { ForkTarget } from '../engine/session/session-fork.ts';
import type { ForkPage } from '../engine/session/session-fork.ts';
import { objectPrefix } from '../engine/session/session-files.ts';
import { Journal } from '../journal/journal.ts';
import type { DeletedFiles } from './deleted-files.ts';
import { durableSql } from './sql-storage.ts';

/** Storage key of the record of an incomplete fork. */
const INCOMPLETE = 'fork';

interface ForkParts {
  readonly storage: DurableObjectStorage;
  readonly objects: ObjectStore | null;
  readonly clock: Clock;
  readonly deletedFiles: DeletedFiles;
}

/** Sends the pages of the branch; resolves when `take` has taken all of them. */
export type SendFork = (take: (page: ForkPage) => Promise<void>) => Promise<void>;

export class ForkedSession {
  readonly #parts: ForkParts;
  #isRunning = false;

  constructor(parts: ForkParts) {
    this.#parts = parts;
  }

  /** Whether a lost host has left an incomplete fork. */
  get isAbandoned(): boolean {
    return !this.#isRunning && this.#incomplete() !== undefined;
  }

  /** @throws EngineError `run_in_progress` if it is being made already, by a request with the same key */
  async make(record: SessionRecord, send: SendFork): Promise<void> {
    const { storage, objects, clock } = this.#parts;
    if (this.#isRunning) throw new EngineError('run_in_progress', 'This fork is already being made');
    this.#isRunning = true;
    try {
      if (this.#incomplete() !== undefined) await this.#clear();
      storage.kv.put(INCOMPLETE, record);
      await storage.setAlarm(clock.now() + limits.forkMs);
      const target = new ForkTarget(new Journal(durableSql(storage)), record, objects);
      await send(async (page) => await target.take(page));
      await target.finish(() => storage.kv.delete(INCOMPLETE));
    } catch (fault) {
      await this.#clear();
      throw fault;
    } finally {
      this.#isRunning = false;
    }
  }

  /** Deletes an incomplete fork of a lost host. */
  async clear(): Promise<void> {
    if (this.isAbandoned) await this.#clear();
  }

  #incomplete(): SessionRecord | undefined {
    return this.#parts.storage.kv.get<SessionRecord>(INCOMPLETE);
  }

  /** Objects are deleted when the object storage answers. */
  async #clear(): Promise<void> {
    const { storage, objects, clock, deletedFiles } = this.#parts;
    const record = this.#incomplete();
    const prefix = record === undefined || objects === null ? null : objectPrefix(record);
    deletedFiles.replaceSession(prefix === null ? null : { prefix, isPending: false }, []);
    if (deletedFiles.isEmpty) {
      await storage.deleteAlarm();
      await storage.deleteAll();
    } else await storage.setAlarm(clock.now() + limits.objectRetryMs);
  }
}
