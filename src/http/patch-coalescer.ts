/**
 * Coalesces a session's events for its readers: a fast model would otherwise cost a chunk for every few letters, for
 * every reader.
 *
 * Invariants:
 *  1. Order is kept and nothing is dropped; consecutive patches are joined (J4).
 *  2. A journaled event flushes the waiting events immediately, as do the first patch of a block and the first one after a
 *     pause: coalescing never delays what a reader sees first (Z4).
 *  3. A patch waits at most `limits.patchCoalesceMs`.
 */
import { isTextPatch, joinPatches } from '../domain/event.ts';
import type { SessionEvent } from '../domain/event.ts';
import { limits } from '../domain/limits.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { EventBatch, EventListener } from '../engine/session/broadcaster.ts';

export class PatchCoalescer {
  readonly #clock: Clock;
  readonly #listen: (listener: EventListener) => () => void;
  readonly #readers = new Set<EventListener>();
  #waiting: SessionEvent[] = [];
  #sentAt = Number.NEGATIVE_INFINITY;
  #cancel: (() => void) | null = null;
  #leave: (() => void) | null = null;

  constructor(clock: Clock, listen: (listener: EventListener) => () => void) {
    this.#clock = clock;
    this.#listen = listen;
  }

  /** Calls `reader` with every batch from now on, until the returned function is called. */
  listen(reader: EventListener): () => void {
    this.#readers.add(reader);
    this.#leave ??= this.#listen((batch) => this.#take(batch));
    return () => {
      this.#readers.delete(reader);
      if (this.#readers.size > 0) return;
      this.#leave?.();
      this.#leave = null;
      this.#cancel?.();
      this.#cancel = null;
      this.#waiting = [];
    };
  }

  #take(batch: EventBatch | null): void {
    if (batch === null) {
      this.#send();
      for (const reader of this.#readers) reader(null);
      return;
    }
    // Not longer, even if the clock was set back.
    const waitMs = Math.min(limits.patchCoalesceMs, this.#sentAt + limits.patchCoalesceMs - this.#clock.now());
    const now = waitMs <= 0 || batch.some(isUrgent);
    // The common case: every reader gets the session's own array.
    if (now && this.#waiting.length === 0) return this.#publish(batch);
    for (const event of batch) this.#join(event);
    if (now) this.#send();
    else this.#cancel ??= this.#clock.schedule(waitMs, () => this.#send());
  }

  #join(event: SessionEvent): void {
    const last = this.#waiting.at(-1);
    const joined = last === undefined ? null : joinPatches(last, event);
    if (joined === null) this.#waiting.push(event);
    else this.#waiting[this.#waiting.length - 1] = joined;
  }

  #send(): void {
    const batch = this.#waiting;
    this.#waiting = [];
    this.#cancel?.();
    this.#cancel = null;
    if (batch.length > 0) this.#publish(batch);
  }

  #publish(batch: EventBatch): void {
    this.#sentAt = this.#clock.now();
    for (const reader of this.#readers) reader(batch);
  }
}

/** A journaled event, or the first character of a block. */
function isUrgent(event: SessionEvent): boolean {
  return event.seq !== null || (isTextPatch(event) && event.data.offset === 0);
}
