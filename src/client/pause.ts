/** Waiting, through a clock that tests replace. */
import type { Clock } from '../domain/ports/clock.ts';

export type { Clock };

export const systemClock: Clock = {
  now: () => Date.now(),
  schedule(delayMs, callback) {
    const timer = setTimeout(callback, delayMs);
    return () => clearTimeout(timer);
  },
};

const FIRST_MS = 250;
const MOST_MS = 5_000;

/** Milliseconds before the next attempt: exponential with jitter. @param failures in a row, from 1; @param random in [0, 1) */
export function backoffMs(failures: number, random: number): number {
  return Math.min(MOST_MS, FIRST_MS * 2 ** (failures - 1)) * (0.5 + random / 2);
}

/** Resolves after the time, or as soon as the signal is aborted. */
export async function pause(delayMs: number, clock: Clock, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      cancel();
      signal.removeEventListener('abort', done);
      resolve();
    };
    const cancel = clock.schedule(delayMs, done);
    signal.addEventListener('abort', done);
  });
}

/** A signal of its own, which is also aborted with another one. */
export class LinkedSignal {
  readonly #own = new AbortController();
  readonly #others: readonly AbortSignal[];
  readonly #follow = (): void => this.abort(this.#others.find(({ aborted }) => aborted)?.reason);

  constructor(...others: readonly (AbortSignal | undefined)[]) {
    this.#others = others.filter((other) => other !== undefined);
    for (const other of this.#others) {
      if (other.aborted) this.#own.abort(other.reason);
      else other.addEventListener('abort', this.#follow);
    }
  }

  get signal(): AbortSignal {
    return this.#own.signal;
  }

  abort(reason?: unknown): void {
    this.#own.abort(reason);
    this.release();
  }

  /** It is no longer aborted with the others. */
  release(): void {
    for (const other of this.#others) other.removeEventListener('abort', this.#follow);
  }
}
