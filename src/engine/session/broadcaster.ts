/**
 * Fan-out of a session's events to its readers. Readers keep their own place; the hub keeps nothing,
 * so that a reader who never reads costs nothing here (a slow one goes back to the journal, J4).
 */
import type { SessionEvent } from '../../domain/event.ts';

/** One turn's events, in order. The same array goes to every reader, so that it can be encoded once. */
export type EventBatch = readonly SessionEvent[];
/** Called with null when no more events will ever come. */
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

  /** The session is gone: every reader's stream ends. */
  close(): void {
    for (const listener of this.#listeners) listener(null);
    this.#listeners.clear();
  }
}
