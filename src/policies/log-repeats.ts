/** Limits repeats in the log: one entry per key and period, with the number of events since the previous entry (X5). */
import { limits } from '../domain/limits.ts';

interface Repeats {
  readonly at: number;
  readonly skipped: number;
}

export class LogRepeats {
  readonly #now: () => number;
  /** The entries of the latest period, oldest first. */
  readonly #known = new Map<string, Repeats>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** @returns how many events the entry stands for; null if the event is only counted */
  admit(key: string): number | null {
    const now = this.#now();
    const last = this.#known.get(key);
    if (last !== undefined && now - last.at < limits.logRepeatMs) {
      this.#known.set(key, { ...last, skipped: last.skipped + 1 });
      return null;
    }
    this.#known.delete(key);
    this.#known.set(key, { at: now, skipped: 0 });
    const [oldest] = this.#known.keys();
    if (this.#known.size > limits.logRepeats && oldest !== undefined) this.#known.delete(oldest);
    return 1 + (last?.skipped ?? 0);
  }
}
