import { indexOrEnd } from './characters.ts';

/** The next occurrence of a character in a text that is read from left to right: each stretch is searched once. */
export class Occurrences {
  readonly #character: string;
  #next = -1;

  constructor(character: string) {
    this.#character = character;
  }

  /** Another text begins. */
  reset(): void {
    this.#next = -1;
  }

  /** @returns the text's length where the character does not occur */
  from(text: string, index: number): number {
    if (this.#next < index) this.#next = indexOrEnd(text, this.#character, index);
    return this.#next;
  }
}
