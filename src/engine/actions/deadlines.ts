/**
 * A run's deadlines on one timer of the platform: a timer for each action, set and cleared within a
 * millisecond, would cost more than the decisions about it.
 *
 * Invariants:
 *  1. A callback runs once, when its time has come, in the order of the times; never after its cancel.
 *  2. A timer of the platform stands exactly as long as a deadline does, and at the latest for the next of them:
 *     one that was set for a deadline that is gone finds nothing to do and is set again.
 *  3. What is remembered is proportional to the deadlines that stand.
 *  4. A host's clock that is put back delays nothing: what the platform waited for has come when its timer fires.
 */
import type { Clock } from '../../domain/ports.ts';

interface Deadline {
  readonly at: number;
  readonly order: number;
  /** Null once it is cancelled. */
  callback: (() => void) | null;
}

/** So many cancelled deadlines are kept before the others are gathered without them. */
const KEPT = 64;

export class Deadlines {
  readonly #clock: Clock;
  /** A heap: what is due first stands first, and before what is below it. */
  #heap: Deadline[] = [];
  #standing = 0;
  #order = 0;
  #armed: { readonly at: number; readonly cancel: () => void } | null = null;
  /** What the clock said last, and by how much it has been put back since the beginning. */
  #seen = Number.NEGATIVE_INFINITY;
  #putBackMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `callback` in `delayMs`; returns its cancel. */
  schedule(delayMs: number, callback: () => void): () => void {
    const deadline: Deadline = { at: this.#now() + Math.max(0, delayMs), order: this.#order, callback };
    this.#order += 1;
    this.#standing += 1;
    push(this.#heap, deadline);
    this.#arm(deadline.at, deadline.at - Math.max(0, delayMs));
    return () => {
      if (deadline.callback === null) return;
      deadline.callback = null;
      this.#gone();
    };
  }

  #gone(): void {
    this.#standing -= 1;
    if (this.#standing === 0) {
      this.#heap = [];
      this.#armed?.cancel();
      this.#armed = null;
    } else if (this.#heap.length > 2 * this.#standing + KEPT) {
      // A sorted list is a heap.
      this.#heap = this.#heap.filter(({ callback }) => callback !== null).sort(byTime);
    }
  }

  /** Time that never goes back. */
  #now(): number {
    const now = this.#clock.now();
    if (now < this.#seen) this.#putBackMs += this.#seen - now;
    this.#seen = now;
    return now + this.#putBackMs;
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
      pop(this.#heap);
      const { callback } = first;
      if (callback === null) continue;
      first.callback = null;
      this.#gone();
      callback();
    }
  }
}

function byTime(a: Deadline, b: Deadline): number {
  return a.at - b.at || a.order - b.order;
}

function push(heap: Deadline[], deadline: Deadline): void {
  let at = heap.length;
  heap.push(deadline);
  while (at > 0) {
    const parentAt = (at - 1) >> 1;
    const parent = heap[parentAt];
    if (parent === undefined || byTime(parent, deadline) <= 0) break;
    heap[at] = parent;
    at = parentAt;
  }
  heap[at] = deadline;
}

/** Takes the first one out. */
function pop(heap: Deadline[]): void {
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return;
  let at = 0;
  for (;;) {
    let childAt = 2 * at + 1;
    let child = heap[childAt];
    if (child === undefined) break;
    const right = heap[childAt + 1];
    if (right !== undefined && byTime(right, child) < 0) {
      child = right;
      childAt += 1;
    }
    if (byTime(last, child) <= 0) break;
    heap[at] = child;
    at = childAt;
  }
  heap[at] = last;
}
