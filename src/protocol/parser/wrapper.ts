/**
 * A code fence around the whole output (P9), as some models write. Its two lines are dropped.
 *
 * Owns the open wrapper, and the line that may open or close it, which is held back until that is decided.
 *
 * Invariants:
 *  1. A wrapper opens only before any other text, and closes only between blocks.
 *  2. At most `LINE_CHARS` characters are held back.
 */
import { BACKTICK, LESS, LINE_FEED, isSpace } from './characters.ts';

/**
 * The effect of a character on the held line.
 *  - `pending`: not decided yet
 *  - `fence`: it ends the line, which opens or closes the wrapper
 *  - `fence_before`: it is the `<` after the marks that close the wrapper
 *  - `text_before`: the line is text; this character is still to be read
 */
export type WrapperOutcome = 'pending' | 'fence' | 'fence_before' | 'text_before';

const LINE_CHARS = 120;
const LEAST_MARKS = 3;

export class Wrapper {
  /** The character of the open wrapper; 0 for none. */
  #open = 0;
  #openMarks = 0;
  #mayOpen = true;
  #line = '';
  #mark = 0;
  #marks = 0;

  /** The generation has produced output: no wrapper can open any more. */
  forbidOpening(): void {
    this.#mayOpen = false;
  }

  /** Whether a line with these marks may open or close the wrapper. */
  mayBeginWith(mark: number): boolean {
    return this.#open === 0 ? this.#mayOpen : this.#open === mark;
  }

  step(character: string): WrapperOutcome {
    const outcome = this.#step(character.charCodeAt(0));
    if (outcome === 'pending') this.#line += character;
    return outcome;
  }

  /** At the end of the text: whether the line closes the wrapper. */
  get closes(): boolean {
    return this.#open !== 0 && this.#marks >= this.#openMarks;
  }

  /** Returns the held line and clears it. */
  takeLine(): string {
    const line = this.#line;
    this.#line = '';
    return line;
  }

  #step(code: number): WrapperOutcome {
    const chars = this.#line.length;
    if (chars === 0) {
      this.#mark = code;
      this.#marks = 1;
      return 'pending';
    }
    if (code === this.#mark && this.#marks === chars && chars < LINE_CHARS) {
      this.#marks += 1;
      return 'pending';
    }
    if (this.#marks < Math.max(LEAST_MARKS, this.#openMarks)) return 'text_before';
    const opening = this.#open === 0;
    if (code === LINE_FEED) return this.#toggle('fence');
    if (code === LESS) return opening ? 'text_before' : this.#toggle('fence_before');
    const allowed = opening ? code !== BACKTICK || this.#mark !== BACKTICK : isSpace(code);
    return allowed && chars < LINE_CHARS ? 'pending' : 'text_before';
  }

  #toggle(outcome: WrapperOutcome): WrapperOutcome {
    const opening = this.#open === 0;
    this.#open = opening ? this.#mark : 0;
    this.#openMarks = opening ? this.#marks : 0;
    this.#mayOpen = false;
    this.#line = '';
    return outcome;
  }
}
