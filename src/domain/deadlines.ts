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
import { inOrder, popFirst, pushInOrder } from './heap.ts';

interface Deadline {
  readonly at: number;
  readonly order: number;
  /** Null once it is cancelled. */
  callback: (() => void) | null;
}

/** Maximum number of cancelled deadlines in the heap before it is rebuilt. */
const MAX_CANCELLED = 64;

export class Deadlines {
  readonly #clock: Clock;
  /** A heap, earliest deadline first. */
  #heap: Deadline[] = [];
  #pending = 0;
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
    const deadline: Deadline = { at: this.#now() + Math.max(0, delayMs), order: this.#order, callback };
    this.#order += 1;
    this.#pending += 1;
    pushInOrder(this.#heap, deadline);
    this.#arm(deadline.at, deadline.at - Math.max(0, delayMs));
    return () => {
      if (deadline.callback === null) return;
      deadline.callback = null;
      this.#cancelled();
    };
  }

  #cancelled(): void {
    this.#pending -= 1;
    if (this.#pending === 0) {
      this.#heap = [];
      this.#armed?.cancel();
      this.#armed = null;
    } else if (this.#heap.length > 2 * this.#pending + MAX_CANCELLED) {
      // A sorted list is a heap.
      this.#heap = this.#heap.filter(({ callback }) => callback !== null).sort(inOrder);
    }
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
      if (first.callback !== null && first.at > now) return this.#arm(first.at, now);
      popFirst(this.#heap);
      const { callback } = first;
      if (callback === null) continue;
      first.callback = null;
      this.#cancelled();
      callback();
    }
  }
}
