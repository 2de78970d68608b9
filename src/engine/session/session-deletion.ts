/**
 * Deletes the session of an object. Another one may be made there afterwards, under the same id (T5).
 *
 * Owns the order of a deletion. Does not own the storage, or what a session has elsewhere: both are ports.
 *
 * Invariants:
 *  1. A deletion deletes the session that it was asked for, and none that was made after it.
 *  2. A session is deleted once: while that lasts, further requests wait for the same end.
 *  3. Nothing is deleted before the session accepts nothing more and everything in it has ended.
 */
import type { Session } from './session.ts';

type DeletedSession = Pick<Session, 'close'>;

export interface DeletionPorts {
  /** The session of the object. */
  readonly current: () => object;
  /** Deletes what the session has outside of its storage. */
  readonly forget: () => Promise<void>;
  /** Deletes the storage and the alarm. */
  readonly clear: () => Promise<void>;
  /** Replaces the session with the one that the storage contains. Called also after a failure. */
  readonly reopen: () => void;
}

export class SessionDeletion {
  readonly #ports: DeletionPorts;
  #running: Promise<void> | null = null;

  constructor(ports: DeletionPorts) {
    this.#ports = ports;
  }

  /** Resolves when the session is deleted; immediately if it was deleted before. */
  async delete(session: DeletedSession): Promise<void> {
    if (session !== this.#ports.current()) return;
    this.#running ??= this.#run(session).finally(() => (this.#running = null));
    await this.#running;
  }

  async #run(session: DeletedSession): Promise<void> {
    const { forget, clear, reopen } = this.#ports;
    // Requests that arrive during the deletion must not find missing tables.
    await session.close('the session was deleted');
    try {
      await forget();
      await clear();
    } finally {
      reopen();
    }
  }
}
