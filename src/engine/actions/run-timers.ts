/**
 * The timers of a run: the scheduler sets and clears them, and gets an input when one fires.
 *
 * Owns the timers that are set, and those that a replayed record left running. Does not own the meaning of a timer.
 *
 * Invariants:
 *  1. A timer fires at most once, and never after it was cleared.
 *  2. During a replay no timer runs; `resume` starts those that the record left, for their remaining time (J2).
 *  3. A suspended timer keeps its time but uses no platform timer: the host's alarm wakes the run instead (J8).
 */
import type { Clock } from '../../domain/ports/clock.ts';
import type { TimerId } from '../../scheduler/types.ts';
import type { InputQueue } from '../run/input-queue.ts';
import type { RunContext } from '../run/run-context.ts';
import type { RunLog } from '../run/run-log.ts';
import { Deadlines } from '../../domain/deadlines.ts';
import { Expiries, isExpiry } from './expiries.ts';

export class RunTimers {
  readonly #clock: Clock;
  readonly #log: Pick<RunLog, 'replaying'>;
  readonly #inputQueue: Pick<InputQueue, 'put'>;
  readonly #deadlines: Deadlines;
  readonly #expiries: Expiries;
  /** `cancel` is null while the timer is suspended. `at`: epoch milliseconds. */
  readonly #timers = new Map<TimerId, { readonly cancel: (() => void) | null; readonly at: number }>();
  /** Timers that were set in a record and have not fired there. */
  readonly #recorded = new Map<TimerId, { readonly since: number; readonly delayMs: number }>();

  constructor(scope: {
    readonly context: Pick<RunContext, 'clock'>;
    readonly log: Pick<RunLog, 'replaying'>;
    readonly inputQueue: Pick<InputQueue, 'put'>;
  }) {
    const { context, log, inputQueue } = scope;
    this.#clock = context.clock;
    this.#log = log;
    this.#inputQueue = inputQueue;
    this.#deadlines = new Deadlines(context.clock);
    this.#expiries = new Expiries(context.clock, this.#deadlines, (timer) =>
      inputQueue.put({ type: 'timer_fired', timer }),
    );
  }

  set(timer: TimerId, delayMs: number): void {
    this.clear(timer);
    if (this.#log.replaying) {
      this.#recorded.set(timer, { since: this.#clock.now(), delayMs });
      return;
    }
    if (isExpiry(timer)) return this.#expiries.set(timer, delayMs);
    const cancel = this.#deadlines.schedule(delayMs, () => {
      this.#timers.delete(timer);
      this.#inputQueue.put({ type: 'timer_fired', timer });
    });
    this.#timers.set(timer, { cancel, at: this.#clock.now() + delayMs });
  }

  clear(timer: TimerId): void {
    this.#timers.get(timer)?.cancel?.();
    this.#timers.delete(timer);
    if (isExpiry(timer)) this.#expiries.clear(timer);
    this.#recorded.delete(timer);
  }

  /** A timer has fired, now or in the record. */
  fired(timer: TimerId): void {
    this.#recorded.delete(timer);
  }

  /** Starts the timers that a replayed record left running. */
  resume(): void {
    const now = this.#clock.now();
    for (const [timer, { since, delayMs }] of this.#recorded) {
      // A recovered attempt gets its full time again, because the crash used up part of it.
      const passedMs = timer.startsWith('timeout:') ? 0 : Math.max(0, now - since);
      this.set(timer, Math.max(0, delayMs - passedMs));
    }
  }

  /** The run waits for people and clients only: a platform timer would keep the host in memory for days (J8). */
  suspend(): void {
    this.#expiries.suspend();
    for (const [timer, { cancel, at }] of this.#timers) {
      cancel?.();
      this.#timers.set(timer, { cancel: null, at });
    }
  }

  /** The run is active again: overdue timers fire immediately. */
  restart(): void {
    this.#expiries.restart();
    const now = this.#clock.now();
    for (const [timer, { cancel, at }] of this.#timers) {
      if (cancel === null) this.set(timer, Math.max(0, at - now));
    }
  }

  cancelAll(): void {
    for (const { cancel } of this.#timers.values()) cancel?.();
    this.#timers.clear();
    this.#expiries.cancelAll();
  }

  /** When the timer fires, epoch milliseconds; null if it is not set. */
  at(timer: TimerId): number | null {
    return this.#timers.get(timer)?.at ?? this.#expiries.at(timer);
  }

  /** When the next approval or call of a client expires, epoch milliseconds; null if none is open (J8, C3). */
  nextExpiry(): number | null {
    return this.#expiries.next;
  }
}
