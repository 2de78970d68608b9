/**
 * Reads outputs and earlier turns from the journal that are not in memory.
 *
 * A text may refer to one output any number of times, and to several alternately: within one turn each is read once,
 * whatever its size. After the turn, nothing is kept in memory.
 */
import type { Json } from '../../domain/json.ts';

export class OutcomeReader {
  readonly #load: (seq: number) => Json;
  /** The platform keeps the target of a weak reference alive until the end of the turn. */
  readonly #read = new Map<number, WeakRef<{ readonly output: Json }>>();

  /** @param load reads the output of an event, or another value that has a number */
  constructor(load: (seq: number) => Json) {
    this.#load = load;
  }

  /** The value with this number: the output of the event `seq`. */
  at(seq: number): Json {
    const known = this.#read.get(seq)?.deref();
    if (known !== undefined) return known.output;
    const found = { output: this.#load(seq) };
    this.#read.set(seq, new WeakRef(found));
    return found.output;
  }
}
