/**
 * Counts the work of one evaluation, so that no input decides how long a turn takes. One step is about as
 * much as visiting one node of a syntax tree. Code charges its work before doing it.
 */

import { limits } from './limits.ts';
import type { Share } from './turns.ts';

/** Characters that a linear scan passes in the time of one step. */
const CHARS_PER_STEP = 16;

/** Thrown by a meter at its limit; the evaluation ends there. */
export class WorkExceeded extends Error {
  override readonly name = 'WorkExceeded';
}

export class WorkMeter {
  readonly allowed: number;
  readonly #whole: WorkMeter | null;
  #left: number;
  /** Made once: an evaluation that catches errors in a loop must not pay for a stack trace each time. */
  readonly #exceeded: WorkExceeded;

  /** @param allowed steps; @param whole a meter that is charged with the same */
  constructor(allowed: number, whole: WorkMeter | null = null) {
    this.allowed = allowed;
    this.#whole = whole;
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
    this.#whole?.charge(steps);
  }

  /** A meter for a part of the work, with a separate limit. */
  part(allowed: number): WorkMeter {
    return new WorkMeter(allowed, this);
  }

  /** Charges a linear scan of so many characters. */
  chargeChars(chars: number): void {
    this.charge(1 + chars / CHARS_PER_STEP);
  }
}

/**
 * Runs evaluations in turns with everything else that is expensive. What turns out to be cheap runs at once.
 */
export class Pacer {
  readonly #share: Share;

  constructor(share: Share) {
    this.#share = share;
  }

  /**
   * Runs `work`, first with `limits.probeSteps` and, where that is not enough, once more from the start in a turn of
   * its own: it must have no effect.
   *
   * @param allowed steps
   * @throws what `work` throws; the signal's reason when it aborts before
   */
  async run<T>(allowed: number, work: (meter: WorkMeter) => T, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    const probe = new WorkMeter(Math.min(allowed, limits.probeSteps));
    try {
      const found = work(probe);
      if (!probe.exceeded || allowed <= limits.probeSteps) return found;
    } catch (fault) {
      if (!probe.exceeded || allowed <= limits.probeSteps) throw fault;
    } finally {
      this.#share.charge(probe.spent);
    }
    return await this.once(allowed, work, signal);
  }

  /** Runs `work`, which may have effects, in a turn of its own. @throws as `run` */
  async once<T>(allowed: number, work: (meter: WorkMeter) => T, signal?: AbortSignal): Promise<T> {
    await this.#share.turn(signal);
    const meter = new WorkMeter(allowed);
    try {
      return work(meter);
    } finally {
      this.#share.charge(meter.spent);
    }
  }
}

/** What one request reads, in slices of about `limits.sliceChars`. The first is read at once, unless its owner is busy. */
export class Slices {
  readonly #share: Share;

  constructor(share: Share) {
    this.#share = share;
  }

  /** Counts characters that were read, or are about to be. */
  count(chars: number): void {
    this.#share.charge((chars * limits.turnSteps) / limits.sliceChars);
  }

  /** Whether nothing more may be read before `pause`. */
  get full(): boolean {
    return this.#share.isDue;
  }

  /** Lets others have their turn. */
  async pause(): Promise<void> {
    await this.#share.rest();
  }
}
