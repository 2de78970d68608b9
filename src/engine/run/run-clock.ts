/** A run's time: the host's, or the recorded time during a replay (S1, J9). */
import type { Clock } from '../../domain/ports/clock.ts';

export class RunClock implements Clock {
  readonly #clock: Clock;
  /** Epoch milliseconds of the recorded moment; null means now. */
  at: number | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): number {
    return this.at ?? this.#clock.now();
  }

  schedule(delayMs: number, callback: () => void): () => void {
    return this.#clock.schedule(delayMs, callback);
  }
}
