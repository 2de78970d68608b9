/**
 * Fan-out of a session's events to its readers. Readers keep their own position; the broadcaster keeps nothing, so a
 * slow reader costs nothing here (it reads from the journal instead, J4).
 */
import type { SessionEvent } from '../../domain/event.ts';

/** One turn's events, in order. All readers get the same array, so that it can be encoded once. */
export type EventBatch = readonly SessionEvent[];
/** Called with null when there will be no more events. */
export type EventListener = (batch: EventBatch | null) => void;

export class Broadcaster {
  readonly #listeners = new Set<EventListener>();

  /** Calls `listener` with every batch from now on, until the returned function is called. */
  listen(listener: EventListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  publish(batch: EventBatch): void {
    for (const listener of this.#listeners) listener(batch);
  }

  /** The session has ended: closes all readers' streams. */
  close(): void {
    for (const listener of this.#listeners) listener(null);
    this.#listeners.clear();
  }
}
