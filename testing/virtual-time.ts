/**
 * Time of a test. Nothing sleeps: when everything else is idle, time jumps to the next timer.
 *
 * Invariants
 * 1. Time moves only while nothing else can happen: no code of the runtime is running, and no function of the test is
 *    pending, unless that function waits for this time itself (`sleep`).
 * 2. Timers fire in order, each at its own time.
 */
import { settle } from './settle.ts';
import { VirtualClock } from './virtual-clock.ts';

// Fake timers of a test do not change them.
const { setTimeout, clearTimeout } = globalThis;

/** Milliseconds of real time in which a function of the test must settle. Below the time limit of a test in vitest (5 s). */
const STALL_MS = 3_000;
/** Milliseconds between two wake-ups of a session that has more to do. */
const WAKE_MS = 1_000;
/** Jumps until one wait ends: a run that never ends would need more. */
const MOST_JUMPS = 100_000;

interface Waiter {
  readonly isDone: () => boolean;
  readonly resolve: () => void;
  readonly reject: (fault: unknown) => void;
}

/** A pending function of the test. */
interface Pending {
  readonly name: string;
  /** Number of its pending calls of `sleep`. */
  sleeping: number;
}

/** What a function of the test gets of this time. */
export type Sleep = (ms: number) => Promise<void>;

export class VirtualTime {
  readonly clock: VirtualClock;
  readonly #pending = new Set<Pending>();
  readonly #waiters = new Set<Waiter>();
  #isRunning = false;
  #changed = Promise.withResolvers<void>();

  /** @param now epoch milliseconds */
  constructor(now: number) {
    this.clock = new VirtualClock(now);
  }

  /**
   * Runs a function of the test. Time does not move while it is pending, except in its `sleep`.
   *
   * @param name for the error if it does not settle: `the tool "orders"`
   */
  async hold<T>(name: string, signal: AbortSignal | null, work: (sleep: Sleep) => T | Promise<T>): Promise<T> {
    const pending: Pending = { name, sleeping: 0 };
    this.#pending.add(pending);
    try {
      return await work((ms) => this.#sleep(pending, ms, signal));
    } finally {
      this.#pending.delete(pending);
      this.#notify();
    }
  }

  /** Lets time pass until `isDone`. @throws Error if a function of the test does not settle */
  async until(isDone: () => boolean): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiters.add({ isDone, resolve, reject });
    if (!this.#isRunning) void this.#run();
    await promise;
  }

  /** Lets time pass until the promise settles. */
  async during<T>(work: Promise<T>): Promise<T> {
    let isSettled = false;
    const settled = work.finally(() => {
      isSettled = true;
    });
    // The caller gets it below.
    settled.catch(() => undefined);
    await this.until(() => isSettled);
    return await settled;
  }

  /** Whether nothing can happen before time moves. Known after everything that needs no time has happened. */
  get isIdle(): boolean {
    return this.#holders().length === 0;
  }

  /**
   * Moves time, also while functions of the test are pending.
   *
   * @param wakeAt when something has to be woken, epoch milliseconds; null: nothing has to
   * @param wake wakes what is due
   */
  async advance(ms: number, wakeAt: () => number | null, wake: () => Promise<void>): Promise<void> {
    const { clock } = this;
    const until = clock.now() + ms;
    await settle();
    for (let jumps = 0; jumps < MOST_JUMPS; jumps += 1) {
      const alarm = wakeAt();
      const at = Math.min(until, clock.next ?? Infinity, Math.max(alarm ?? Infinity, clock.now() + WAKE_MS));
      clock.advance(at - clock.now());
      await settle();
      if (alarm !== null && alarm <= clock.now()) {
        await wake();
        await settle();
      }
      if (at >= until) return;
    }
    throw new Error(`Time moved ${MOST_JUMPS} times within ${ms} ms: advance it in smaller steps`);
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    try {
      for (let jumps = 0; await this.#isAwaited(); jumps += 1) {
        if (jumps > MOST_JUMPS) throw new Error(`Time moved ${MOST_JUMPS} times, and the run has not ended`);
        if (this.#holders().length > 0) await this.#change();
        else this.#jump();
      }
    } catch (fault) {
      for (const { reject } of this.#waiters) reject(fault);
      this.#waiters.clear();
    } finally {
      this.#isRunning = false;
    }
  }

  /** Whether anybody waits after everything that needs no time has happened. */
  async #isAwaited(): Promise<boolean> {
    await settle();
    for (const waiter of this.#waiters) {
      if (!waiter.isDone()) continue;
      this.#waiters.delete(waiter);
      waiter.resolve();
    }
    return this.#waiters.size > 0;
  }

  #jump(): void {
    const { next } = this.clock;
    if (next === null) throw new Error('Nothing is left that could happen, and the run has not ended');
    this.clock.advance(Math.max(0, next - this.clock.now()));
  }

  #holders(): Pending[] {
    return [...this.#pending].filter(({ sleeping }) => sleeping === 0);
  }

  async #change(): Promise<void> {
    const { promise, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      const names = this.#holders().map(({ name }) => name);
      const which = names.length === 1 ? `${names[0] ?? ''} has` : `${names.join(', ')} have`;
      reject(
        new Error(
          `Time does not move while a function of the test is pending, and ${which} not settled for ${STALL_MS} ms. ` +
            'Wait with ctx.sleep(ms), or move the time with session.clock.advance(ms)',
        ),
      );
    }, STALL_MS);
    try {
      await Promise.race([this.#changed.promise, promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  #notify(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  async #sleep(pending: Pending, ms: number, signal: AbortSignal | null): Promise<void> {
    pending.sleeping += 1;
    this.#notify();
    try {
      await this.pass(ms, signal);
    } finally {
      pending.sleeping -= 1;
      this.#notify();
    }
  }

  /** Resolves after this time. @throws the signal's reason if it aborts first */
  async pass(ms: number, signal: AbortSignal | null): Promise<void> {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const cancel = Number.isFinite(ms) ? this.clock.schedule(ms, resolve) : () => undefined;
    const stop = (): void => reject(signal?.reason as Error);
    signal?.addEventListener('abort', stop, { once: true });
    try {
      await promise;
    } finally {
      cancel();
      signal?.removeEventListener('abort', stop);
    }
  }
}
