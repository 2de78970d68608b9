/**
 * When the approvals and the client's calls of a run expire (J8, C3). There may be thousands, and each answer suspends and
 * restarts them, so they share one deadline and the work for one answer does not depend on their number.
 *
 * Invariants:
 *  1. An expiry fires once, at its time or, after a suspension, as soon as they are restarted; never after it was cleared.
 *  2. While they are suspended, no platform timer is set.
 */
import type { Clock } from '../../domain/ports/clock.ts';
import type { TimerId } from '../../scheduler/types.ts';
import type { Deadlines } from '../../domain/deadlines.ts';
import { isEarlier, push, remove } from '../../domain/heap.ts';

interface Expiry {
  readonly timer: TimerId;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly order: number;
  heapAt: number;
}

/** Whether the timer is for something that waits for a person or a client. */
export function isExpiry(timer: TimerId): boolean {
  return timer.startsWith('approval:') || timer.startsWith('client:');
}

export class Expiries {
  readonly #clock: Clock;
  readonly #deadlines: Deadlines;
  readonly #fire: (timer: TimerId) => void;
  readonly #current = new Map<TimerId, Expiry>();
  /** Earliest first. */
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
    this.#remove(timer);
    const expiry = { timer, at: this.#clock.now() + delayMs, order: this.#order, heapAt: -1 };
    this.#order += 1;
    this.#current.set(timer, expiry);
    push(this.#heap, expiry, isEarlier);
    this.#arm();
  }

  clear(timer: TimerId): void {
    this.#remove(timer);
    if (this.#current.size === 0) this.#disarm();
  }

  #remove(timer: TimerId): void {
    const expiry = this.#current.get(timer);
    if (expiry !== undefined) remove(this.#heap, expiry, isEarlier);
    this.#current.delete(timer);
  }

  at(timer: TimerId): number | null {
    return this.#current.get(timer)?.at ?? null;
  }

  /** Epoch milliseconds; null if there is none. */
  get next(): number | null {
    return this.#heap[0]?.at ?? null;
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
    const [first] = this.#heap;
    if (this.#isSuspended || first === undefined || (this.#armed !== null && this.#armed.at <= first.at)) return;
    this.#disarm();
    const { at } = first;
    const cancel = this.#deadlines.schedule(Math.max(0, at - this.#clock.now()), () => {
      this.#armed = null;
      // Its time has come, also on a clock that was set back.
      const due = Math.max(at, this.#clock.now());
      for (let [next] = this.#heap; next !== undefined && next.at <= due; [next] = this.#heap) {
        this.#remove(next.timer);
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
}
