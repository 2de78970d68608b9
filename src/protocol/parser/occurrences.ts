import { indexOrEnd } from './characters.ts';

/** Finds the next occurrence of a character in a text that is read from left to right. Each part is searched once. */
export class Occurrences {
  readonly #character: string;
  #next = -1;

  constructor(character: string) {
    this.#character = character;
  }

  /** Starts a new text. */
  reset(): void {
    this.#next = -1;
  }

  /** @returns the text's length if the character does not occur */
  from(text: string, index: number): number {
    if (this.#next < index) this.#next = indexOrEnd(text, this.#character, index);
    return this.#next;
  }
}
