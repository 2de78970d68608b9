/**
 * Durations of actions by target, as observed in this session: a moving average used to order waiting actions (S5) and
 * in the plan report (S13).
 *
 * Nothing is stored for it: durations are part of the journaled actions and are read from there when the session's
 * object is loaded again.
 */
import { limits } from '../../domain/limits.ts';

/** Weight of the newest duration: the last five make up five sixths of the estimate. */
const NEWEST = 0.3;

/** Read access for schedulers: milliseconds, or undefined for a target that has not completed yet. */
export interface Estimates {
  get(target: string): number | undefined;
}

export class LearnedDurations implements Estimates {
  readonly #averages = new Map<string, number>();

  /** @param seen earlier durations, oldest first */
  constructor(seen: Iterable<{ readonly target: string; readonly ms: number }> = []) {
    for (const { target, ms } of seen) this.learn(target, ms);
  }

  get(target: string): number | undefined {
    return this.#averages.get(target);
  }

  /** An action of this target has completed in `ms`, including retries and delays. */
  learn(target: string, ms: number): void {
    const average = this.#averages.get(target);
    this.#averages.delete(target);
    this.#averages.set(target, average === undefined ? ms : Math.round(average + NEWEST * (ms - average)));
    if (this.#averages.size <= limits.learnedDurations) return;
    // Removes the least recently updated target.
    const [oldest] = this.#averages.keys();
    if (oldest !== undefined) this.#averages.delete(oldest);
  }
}
