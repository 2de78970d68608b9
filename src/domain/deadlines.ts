/**
 * Maps many deadlines to one platform timer: a separate timer for each action or request, set and cleared within a
 * millisecond, would cost more than the decisions about it.
 *
 * Invariants:
 *  1. A callback runs once, at its time, in order of times; never after its cancel.
 *  2. A platform timer is set exactly while a deadline is pending, for the next deadline or earlier. A timer that was
 *     set for a cancelled deadline does nothing and is set again.
 *  3. Memory is proportional to the number of pending deadlines.
 *  4. A host clock that is set back delays nothing: when the platform's timer fires, its time has come.
 */
import type { Clock } from './ports/clock.ts';
import { isEarlier, push, remove } from './heap.ts';

interface Deadline {
  readonly at: number;
  readonly order: number;
  readonly callback: () => void;
  /** -1 once it has fired or is cancelled. */
  heapAt: number;
}

export class Deadlines {
  readonly #clock: Clock;
  /** A heap, earliest deadline first. */
  readonly #heap: Deadline[] = [];
  #order = 0;
  #armed: { readonly at: number; readonly cancel: () => void } | null = null;
  /** The clock's last value, and the total time by which it was set back. */
  #lastNow = Number.NEGATIVE_INFINITY;
  #setBackMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `callback` after `delayMs`. @returns its cancel function */
  schedule(delayMs: number, callback: () => void): () => void {
    const deadline: Deadline = { at: this.#now() + Math.max(0, delayMs), order: this.#order, callback, heapAt: -1 };
    this.#order += 1;
    push(this.#heap, deadline, isEarlier);
    this.#arm(deadline.at, deadline.at - Math.max(0, delayMs));
    return () => {
      if (deadline.heapAt >= 0) this.#remove(deadline);
    };
  }

  #remove(deadline: Deadline): void {
    remove(this.#heap, deadline, isEarlier);
    if (this.#heap.length > 0) return;
    this.#armed?.cancel();
    this.#armed = null;
  }

  /** A clock that never goes back. */
  #now(): number {
    const now = this.#clock.now();
    if (now < this.#lastNow) this.#setBackMs += this.#lastNow - now;
    this.#lastNow = now;
    return now + this.#setBackMs;
  }

  #arm(at: number, now: number): void {
    if (this.#armed !== null && this.#armed.at <= at) return;
    this.#armed?.cancel();
    const cancel = this.#clock.schedule(at - now, () => this.#fire(at));
    this.#armed = { at, cancel };
  }

  #fire(armedFor: number): void {
    this.#armed = null;
    const now = Math.max(armedFor, this.#now());
    for (let first = this.#heap[0]; first !== undefined; first = this.#heap[0]) {
      if (first.at > now) return this.#arm(first.at, now);
      this.#remove(first);
      first.callback();
    }
  }
}
