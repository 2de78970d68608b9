/**
 * When the approvals and the client's calls of a run expire (J8, C3). There may be thousands, and each answer suspends and
 * restarts them, so they share one deadline and the work for one answer does not depend on their number.
 *
 * Invariants:
 *  1. An expiry fires once, at its time or, after a suspension, as soon as they are restarted; never after it was cleared.
 *  2. While they are suspended, no platform timer is set.
 *  3. The heap has at most twice as many entries as there are expiries, and some.
 */
import type { Clock } from '../../domain/ports/clock.ts';
import type { TimerId } from '../../scheduler/types.ts';
import type { Deadlines } from '../../domain/deadlines.ts';
import { inOrder, popFirst, pushInOrder } from '../../domain/heap.ts';

interface Expiry {
  readonly timer: TimerId;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly order: number;
}

/** Number of cleared entries in the heap before it is rebuilt. */
const MAX_CLEARED = 64;

/** Whether the timer is for something that waits for a person or a client. */
export function isExpiry(timer: TimerId): boolean {
  return timer.startsWith('approval:') || timer.startsWith('client:');
}

export class Expiries {
  readonly #clock: Clock;
  readonly #deadlines: Deadlines;
  readonly #fire: (timer: TimerId) => void;
  readonly #current = new Map<TimerId, Expiry>();
  /** Earliest first; entries that are not in `#current` any more are skipped. */
  #heap: Expiry[] = [];
  #order = 0;
  #armed: { readonly at: number; readonly cancel: () => void } | null = null;
  #isSuspended = false;

  constructor(clock: Clock, deadlines: Deadlines, fire: (timer: TimerId) => void) {
    this.#clock = clock;
    this.#deadlines = deadlines;
    this.#fire = fire;
  }

  set(timer: TimerId, delayMs: number): void {
    const expiry = { timer, at: this.#clock.now() + delayMs, order: this.#order };
    this.#order += 1;
    this.#current.set(timer, expiry);
    pushInOrder(this.#heap, expiry);
    this.#arm();
  }

  clear(timer: TimerId): void {
    this.#current.delete(timer);
    // A sorted list is a heap.
    if (this.#heap.length > 2 * this.#current.size + MAX_CLEARED) {
      this.#heap = this.#heap.filter((expiry) => this.#isCurrent(expiry)).sort(inOrder);
    }
    if (this.#current.size === 0) this.#disarm();
  }

  at(timer: TimerId): number | null {
    return this.#current.get(timer)?.at ?? null;
  }

  /** Epoch milliseconds; null if there is none. */
  get next(): number | null {
    return this.#first()?.at ?? null;
  }

  suspend(): void {
    this.#isSuspended = true;
    this.#disarm();
  }

  restart(): void {
    this.#isSuspended = false;
    this.#arm();
  }

  cancelAll(): void {
    this.#current.clear();
    this.#heap = [];
    this.#disarm();
  }

  #arm(): void {
    const first = this.#first();
    if (this.#isSuspended || first === null || (this.#armed !== null && this.#armed.at <= first.at)) return;
    this.#disarm();
    const { at } = first;
    const cancel = this.#deadlines.schedule(Math.max(0, at - this.#clock.now()), () => {
      this.#armed = null;
      // Its time has come, also on a clock that was set back.
      const due = Math.max(at, this.#clock.now());
      for (let next = this.#first(); next !== null && next.at <= due; next = this.#first()) {
        this.#current.delete(next.timer);
        this.#fire(next.timer);
      }
      this.#arm();
    });
    this.#armed = { at, cancel };
  }

  #disarm(): void {
    this.#armed?.cancel();
    this.#armed = null;
  }

  #first(): Expiry | null {
    for (let first = this.#heap[0]; first !== undefined; first = this.#heap[0]) {
      if (this.#isCurrent(first)) return first;
      popFirst(this.#heap);
    }
    return null;
  }

  #isCurrent(expiry: Expiry): boolean {
    return this.#current.get(expiry.timer) === expiry;
  }
}
