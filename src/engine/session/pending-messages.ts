/**
 * Messages whose files are being fetched (C2): they have no run yet, and hold up nothing else of the session.
 *
 * Owns how many there may be, their order for each Idempotency-Key, and the signal that ends them. Does not own the
 * transfer (policies/fetched-content.ts), the checks of a message, or the creation of its run (session.ts).
 *
 * Invariants
 * 1. A session has at most `limits.fetchingMessages` of them, including those that wait for another one.
 * 2. Messages with the same key are accepted one after the other: a repeated one finds the run of the first.
 * 3. A message whose client has left, or whose session was closed, is not accepted after that.
 */
import { EngineError } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';

export class PendingMessages {
  readonly #closed = new AbortController();
  /** The last message of each key; resolves when it is settled. */
  readonly #last = new Map<string, Promise<void>>();
  #count = 0;

  /**
   * @param signal aborts when the client leaves
   * @param accept fetches the files and accepts the message; must check the signal before it writes
   * @throws EngineError `queue_full`; `unknown_session` once the session is closed
   */
  async run<T>(key: string | null, signal: AbortSignal, accept: (signal: AbortSignal) => Promise<T>): Promise<T> {
    if (this.#count >= limits.fetchingMessages) {
      const message = `The files of ${limits.fetchingMessages} messages of this session are already being fetched`;
      throw new EngineError('queue_full', message);
    }
    const own = Promise.withResolvers<void>();
    const before = key === null ? undefined : this.#last.get(key);
    if (key !== null) this.#last.set(key, own.promise);
    this.#count += 1;
    try {
      await before;
      const any = AbortSignal.any([this.#closed.signal, signal]);
      any.throwIfAborted();
      return await accept(any);
    } catch (fault) {
      // The answer reaches no one.
      if (signal.aborted) throw new EngineError('url_failed', 'the client left before the files were fetched');
      throw fault;
    } finally {
      this.#count -= 1;
      own.resolve();
      if (key !== null && this.#last.get(key) === own.promise) this.#last.delete(key);
    }
  }

  /** Ends all of them, and all later ones. */
  close(reason: EngineError): void {
    this.#closed.abort(reason);
  }
}
