/**
 * How long actions take, by target, as this session has seen it: a moving average that orders waiting
 * actions (S5) and feeds the plan report (S13).
 *
 * Nothing is written for it: durations stand in the journal with the actions that took them, and are
 * read back from there when the session's object comes back.
 */
import { limits } from '../../domain/limits.ts';

/** Weight of the newest duration: the last five make up five sixths of the estimate. */
const NEWEST = 0.3;

/** What schedulers read of it: milliseconds, undefined for a target that has not completed yet. */
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

  /** An action of this target has completed in `ms`, retries and their waits included. */
  learn(target: string, ms: number): void {
    const average = this.#averages.get(target);
    this.#averages.delete(target);
    this.#averages.set(target, average === undefined ? ms : Math.round(average + NEWEST * (ms - average)));
    if (this.#averages.size <= limits.learnedDurations) return;
    // The one that has not been heard of for longest.
    const [oldest] = this.#averages.keys();
    if (oldest !== undefined) this.#averages.delete(oldest);
  }
}
