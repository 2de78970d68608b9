/**
 * Fan-out of a session's events to its readers. Readers keep their own position, so a slow reader costs nothing here (it
 * reads from the journal instead, J4).
 *
 * Invariant: journaled events are published in order, without a gap and each once. If the turn that wrote an event could
 * not publish it, because its sync failed, the next batch does. Its live events are lost: the whole text of a block
 * precedes the block's end.
 */
import { withWholeTexts } from '../../domain/event.ts';
import type { SessionEvent } from '../../domain/event.ts';

/** One turn's events, in order. All readers get the same array, so that it can be encoded once. */
export type EventBatch = readonly SessionEvent[];
/** Called with null when there will be no more events. */
export type EventListener = (batch: EventBatch | null) => void;

/** The durable events with a seq above `after` and below `before`, in order. */
export type ReadEvents = (after: number, before: number) => SessionEvent[];

export class Broadcaster {
  readonly #listeners = new Set<EventListener>();
  readonly #read: ReadEvents;
  #lastSeq: number;

  /** @param lastSeq the last event that was published, or could be read before anyone listened */
  constructor(lastSeq: number, read: ReadEvents) {
    this.#lastSeq = lastSeq;
    this.#read = read;
  }

  /** Calls `listener` with every batch from now on, until the returned function is called. */
  listen(listener: EventListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** @param batch durable events, and live ones */
  publish(batch: EventBatch): void {
    const complete = this.#complete(batch);
    if (complete.length === 0) return;
    for (const listener of this.#listeners) listener(complete);
  }

  /** Publishes the durable events up to this one that were not published in their turn. */
  flush(lastSeq: number): void {
    if (lastSeq > this.#lastSeq) this.publish(withWholeTexts(this.#read(this.#lastSeq, lastSeq + 1)));
  }

  #complete(batch: EventBatch): EventBatch {
    let last = this.#lastSeq;
    // The common case: every reader gets the run's own array.
    if (batch.every(({ seq }) => seq === null || seq === ++last)) {
      this.#lastSeq = last;
      return batch;
    }
    const complete: SessionEvent[] = [];
    for (const event of batch) {
      const { seq } = event;
      if (seq !== null && seq <= this.#lastSeq) continue;
      if (seq !== null && seq > this.#lastSeq + 1) complete.push(...withWholeTexts(this.#read(this.#lastSeq, seq)));
      complete.push(event);
      this.#lastSeq = seq ?? this.#lastSeq;
    }
    return complete;
  }

  /** The session has ended: closes all readers' streams. */
  close(): void {
    // Readers leave by themselves. The host listens too, and stays.
    for (const listener of this.#listeners) listener(null);
  }
}
