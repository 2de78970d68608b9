/**
 * The comment that keeps idle streams alive, every `limits.heartbeatMs` (H2): one timer for all readers
 * of an object, so that two hundred idle ones cost as much as one; none when nobody reads.
 */
import { limits } from '../domain/limits.ts';
import type { Clock } from '../domain/ports.ts';

export class Heartbeat {
  readonly #clock: Clock;
  readonly #beats = new Set<() => void>();
  #stop: (() => void) | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How many streams are open. */
  get readers(): number {
    return this.#beats.size;
  }

  /** Calls `beat` with every beat from now on, the first time within `limits.heartbeatMs`; returns its cancel. */
  add(beat: () => void): () => void {
    this.#beats.add(beat);
    if (this.#stop === null) this.#arm();
    return () => {
      this.#beats.delete(beat);
      if (this.#beats.size > 0) return;
      this.#stop?.();
      this.#stop = null;
    };
  }

  #arm(): void {
    this.#stop = this.#clock.schedule(limits.heartbeatMs, () => {
      this.#arm();
      for (const beat of this.#beats) beat();
    });
  }
}
