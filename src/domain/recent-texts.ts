/**
 * What is derived from long texts, kept for the texts that were used last: the sessions of an isolate have many in common.
 *
 * Invariants:
 *  1. Equal texts give the same value while it is kept. All sessions share that value and never change it.
 *  2. At most `limits.recentTexts` texts with `limits.recentTextChars` in all are kept; the least recently used goes first. A
 *     text that is longer is not kept, and removes nothing.
 *  3. A value takes memory in proportion to its text, so the length of the texts bounds the memory.
 */
import { limits } from './limits.ts';

export class RecentTexts<T> {
  readonly #derive: (text: string) => T;
  /** Least recently used first. */
  readonly #values = new Map<string, T>();
  #chars = 0;

  /** @param derive depends on the text only, and does not use these texts itself */
  constructor(derive: (text: string) => T) {
    this.#derive = derive;
  }

  /** The value of a text. @throws what `derive` throws */
  of(text: string): T {
    if (text.length > limits.recentTextChars) return this.#derive(text);
    const isKept = this.#values.has(text);
    const value = isKept ? (this.#values.get(text) as T) : this.#derive(text);
    if (isKept) this.#values.delete(text);
    else this.#chars += text.length;
    this.#values.set(text, value);
    for (const oldest of this.#values.keys()) {
      if (this.#values.size <= limits.recentTexts && this.#chars <= limits.recentTextChars) break;
      this.#values.delete(oldest);
      this.#chars -= oldest.length;
    }
    return value;
  }
}
