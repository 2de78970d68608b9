/**
 * Counts the work of one evaluation, so that no input decides how long a turn takes. One step is about as
 * much as visiting one node of a syntax tree. Code charges its work before doing it.
 */

import { limits } from './limits.ts';
import type { Clock } from './ports.ts';
import { sleep } from './sleep.ts';

/** Characters that a linear scan passes in the time of one step. */
const CHARS_PER_STEP = 16;

/** Thrown by a meter at its limit; the evaluation ends there. */
export class WorkExceeded extends Error {
  override readonly name = 'WorkExceeded';
}

export class WorkMeter {
  readonly allowed: number;
  #left: number;
  /** Made once: an evaluation that catches errors in a loop must not pay for a stack trace each time. */
  readonly #exceeded: WorkExceeded;

  /** @param allowed steps */
  constructor(allowed: number) {
    this.allowed = allowed;
    this.#left = allowed;
    this.#exceeded = new WorkExceeded(`it needs too much work (allowed: ${allowed} steps)`);
  }

  get spent(): number {
    return this.allowed - Math.max(0, this.#left);
  }

  /** Whether the meter has thrown; an evaluation that catches errors has no other way to tell. */
  get exceeded(): boolean {
    return this.#left < 0;
  }

  /** @throws WorkExceeded past the limit, and at every later call */
  charge(steps = 1): void {
    // Written so that NaN is refused as well.
    if (steps <= this.#left) this.#left -= steps;
    else {
      this.#left = -1;
      throw this.#exceeded;
    }
  }

  /** Charges a linear scan of so many characters. */
  chargeChars(chars: number): void {
    this.charge(1 + chars / CHARS_PER_STEP);
  }
}

/**
 * Spreads expensive evaluations over time: one at a time, and after each a pause in which the thread is free for others.
 * All sessions of a thread share one. Nothing waits for an evaluation that another session has promised: each caller
 * waits by its own timer until the pause is over and then looks again.
 */
export class Pacer {
  readonly #clock: Clock;
  #freeAt = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Runs `work` at once where nothing expensive has run just before, else after the pause.
   *
   * @param allowed steps
   * @throws what `work` throws; the signal's reason when it aborts before
   */
  async run<T>(allowed: number, work: (meter: WorkMeter) => T, signal: AbortSignal): Promise<T> {
    for (;;) {
      signal.throwIfAborted();
      const waitMs = this.#freeAt - this.#clock.now();
      // A pause that is longer than any: the clock was put back.
      if (waitMs <= 0 || waitMs > limits.pauseMs) break;
      await sleep(waitMs, this.#clock, signal);
    }
    const meter = new WorkMeter(allowed);
    try {
      return work(meter);
    } finally {
      const pauseMs = Math.min(limits.pauseMs, Math.floor(meter.spent / limits.stepsPerPauseMs));
      if (pauseMs > 0) this.#freeAt = this.#clock.now() + pauseMs;
    }
  }
}

/**
 * Spreads long reads over time: after each slice its reader waits for a place behind all others that are reading. All
 * sessions of a thread share one. Each reader waits by its own timer, as with `Pacer`.
 */
export class ReadPacer {
  readonly #clock: Clock;
  #freeAt = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves when the next slice may be read. @param chars what was read since the last pause */
  async pause(chars: number): Promise<void> {
    const now = this.#clock.now();
    const from = this.#freeAt - now > limits.sliceQueueMs ? now : Math.max(now, this.#freeAt);
    const until = from + Math.max(1, Math.ceil(chars / limits.sliceCharsPerPauseMs));
    this.#freeAt = until;
    await new Promise<void>((resolve) => {
      this.#clock.schedule(until - now, resolve);
    });
  }
}

/** What one request reads, in slices of `limits.sliceChars`. The first is read at once. */
export class Slices {
  readonly #pacer: ReadPacer;
  #chars = 0;

  constructor(pacer: ReadPacer) {
    this.#pacer = pacer;
  }

  /** Counts characters that were read, or are about to be. */
  count(chars: number): void {
    this.#chars += chars;
  }

  /** Whether nothing more may be read before `pause`. */
  get full(): boolean {
    return this.#chars >= limits.sliceChars;
  }

  /** Lets others have their turn. */
  async pause(): Promise<void> {
    const chars = this.#chars;
    this.#chars = 0;
    await this.#pacer.pause(chars);
  }
}
