/**
 * Outputs that have left memory, read from the journal.
 *
 * A text may refer to one output any number of times, and to several in turn: within one turn each is read once,
 * whatever its size. After the turn the reader holds on to nothing.
 */
import type { Json } from '../../domain/json.ts';

export class OutcomeReader {
  readonly #load: (seq: number) => Json;
  /** The platform keeps what a weak reference was made of until the turn is over. */
  readonly #read = new Map<number, WeakRef<{ readonly output: Json }>>();

  /** @param load reads the output that an event holds */
  constructor(load: (seq: number) => Json) {
    this.#load = load;
  }

  /** The output that the event `seq` holds. */
  at(seq: number): Json {
    const known = this.#read.get(seq)?.deref();
    if (known !== undefined) return known.output;
    const found = { output: this.#load(seq) };
    this.#read.set(seq, new WeakRef(found));
    return found.output;
  }
}
