/**
 * Counts the work of one evaluation, so that no input can make a turn long. One step costs about as much as visiting
 * one node of a syntax tree. Code charges its work before doing it.
 */

import { limits } from './limits.ts';
import type { ThreadShare } from './fair-queue.ts';

/** Characters that a linear scan reads in one step. */
const CHARS_PER_STEP = 16;

/** Thrown by a meter at its limit; ends the evaluation. */
export class WorkExceeded extends Error {
  override readonly name = 'WorkExceeded';
}

export class WorkMeter {
  readonly allowed: number;
  readonly #whole: WorkMeter | null;
  #left: number;
  /** Created once, when it is needed: an error costs a stack trace, and most evaluations stay within their limit. */
  #exceeded: WorkExceeded | null = null;

  /** @param allowed steps; @param whole a meter that is charged as well */
  constructor(allowed: number, whole: WorkMeter | null = null) {
    this.allowed = allowed;
    this.#whole = whole;
    this.#left = allowed;
  }

  get spent(): number {
    return this.allowed - Math.max(0, this.#left);
  }

  /** Whether the meter has thrown, for evaluations that catch errors. */
  get exceeded(): boolean {
    return this.#left < 0;
  }

  /** @throws WorkExceeded past the limit, and at every later call */
  charge(steps = 1): void {
    // Written so that NaN is rejected as well.
    if (steps <= this.#left) this.#left -= steps;
    else {
      this.#left = -1;
      this.#exceeded ??= new WorkExceeded(`it needs too much work (allowed: ${this.allowed} steps)`);
      throw this.#exceeded;
    }
    this.#whole?.charge(steps);
  }

  /** A meter for a part of the work, with a separate limit. */
  part(allowed: number): WorkMeter {
    return new WorkMeter(allowed, this);
  }

  /** Charges a linear scan of this many characters. */
  chargeChars(chars: number): void {
    this.charge(1 + chars / CHARS_PER_STEP);
  }
}

/**
 * Runs evaluations in turns with other expensive work. Cheap ones run at once.
 */
export class Pacer {
  readonly #share: ThreadShare;

  constructor(share: ThreadShare) {
    this.#share = share;
  }

  /**
   * Runs `work`, first with `limits.probeSteps`. If that is not enough, runs it again from the start in a separate
   * turn, so it must have no effects.
   *
   * @param allowed steps
   * @throws what `work` throws; the signal's reason if it aborts first
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

  /** Runs `work`, which may have effects, in a separate turn. @throws like `run` */
  async once<T>(allowed: number, work: (meter: WorkMeter) => T, signal?: AbortSignal): Promise<T> {
    await this.#share.waitTurn(signal);
    const meter = new WorkMeter(allowed);
    try {
      return work(meter);
    } finally {
      this.#share.charge(meter.spent);
    }
  }
}

/**
 * Divides the reading of one request into slices of about `limits.sliceChars`. The first slice is read at once, unless
 * the owner is busy.
 */
export class Slices {
  readonly #share: ThreadShare;

  constructor(share: ThreadShare) {
    this.#share = share;
  }

  /** Counts characters that were read or will be read now. */
  count(chars: number): void {
    this.#share.charge((chars * limits.turnSteps) / limits.sliceChars);
  }

  /** Whether `pause` must be called before more is read. */
  get full(): boolean {
    return this.#share.isDue;
  }

  /** Yields to other work. */
  async pause(): Promise<void> {
    await this.#share.yieldThread();
  }
}
