/**
 * The comment that keeps idle streams open, every `limits.heartbeatMs` (H2). One timer serves all readers of an object,
 * so two hundred idle readers cost as much as one. There is no timer without readers.
 */
import { limits } from '../domain/limits.ts';
import type { Clock } from '../domain/ports/clock.ts';

export class Heartbeat {
  readonly #clock: Clock;
  readonly #beats = new Set<() => void>();
  #stop: (() => void) | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Number of open streams. */
  get readers(): number {
    return this.#beats.size;
  }

  /** Calls `beat` at every heartbeat, first within `limits.heartbeatMs`. @returns its cancel function */
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
