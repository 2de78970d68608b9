/** Finds the names of the functions whose results a seeded history has. A message with calls is read once for its results. */
import type { SeededCall, SeededMessage } from '../../domain/seeded.ts';
import type { Seeded } from '../../journal/seeded.ts';

export class SeededCalls {
  readonly #seeded: Pick<Seeded, 'callsOf'>;
  #last: { readonly id: number; readonly calls: readonly SeededCall[] } = { id: 0, calls: [] };

  constructor(seeded: Pick<Seeded, 'callsOf'>) {
    this.#seeded = seeded;
  }

  /** @returns null if the message is not a result. @param id number of the message */
  nameOf(id: number, message: SeededMessage): string | null {
    if (message.role !== 'tool') return null;
    // The results of a message follow it directly, one for each call.
    const isNext = id > this.#last.id && id <= this.#last.id + this.#last.calls.length;
    if (!isNext) this.#last = this.#seeded.callsOf(id);
    return this.#last.calls.find((call) => call.id === message.tool_call_id)?.function.name ?? null;
  }
}
