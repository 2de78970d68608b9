/**
 * Finds the escapes of JSON in a text that arrives in pieces (C9): `\n`, `\"`, `\u0041`. In JSON as text, the letter of an
 * escape touches the text after it, so a pattern with `\b` would not match there.
 *
 * A run of backslashes is one escape, because JSON in JSON doubles them. A backslash before another letter is an escape of
 * one character.
 */

/** In the mask, the first character of an escape, and each further one. Both are line breaks: no part of a word. */
const FIRST = '\n';
const INSIDE = '\r';
const HEX_DIGITS = 4;

export class EscapeMask {
  /** The last character was a backslash. */
  #isOpen = false;
  /** Hexadecimal digits that may still belong to the escape. */
  #hexLeft = 0;

  /** @returns text of the same length, with line breaks in place of escapes */
  feed(piece: string): string {
    if (!this.#isOpen && this.#hexLeft === 0 && !piece.includes('\\')) return piece;
    let masked = '';
    for (let at = 0; at < piece.length; at += 1) masked += this.#next(piece.charAt(at));
    return masked;
  }

  #next(unit: string): string {
    const wasOpen = this.#isOpen;
    this.#isOpen = unit === '\\';
    if (this.#isOpen) {
      this.#hexLeft = 0;
      return wasOpen ? INSIDE : FIRST;
    }
    if (wasOpen) {
      this.#hexLeft = unit === 'u' ? HEX_DIGITS : 0;
      return 'nrtbfu"/'.includes(unit) ? INSIDE : unit;
    }
    if (this.#hexLeft === 0) return unit;
    const isHex = /[0-9a-fA-F]/.test(unit);
    this.#hexLeft = isHex ? this.#hexLeft - 1 : 0;
    return isHex ? INSIDE : unit;
  }
}

/** Whether an escape is cut before this character. */
export function isInsideEscape(text: string, masked: string, at: number): boolean {
  return masked[at] === INSIDE && text[at] !== INSIDE;
}
