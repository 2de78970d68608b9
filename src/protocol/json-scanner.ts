/**
 * Says, while an action's body arrives, whether the reader stands inside a JSON string (P7).
 *
 * Owns the place in the body and the shape seen so far. Does not own what ends an action: it stops at
 * every `<` that could matter and at nothing else.
 *
 * Invariants:
 *  1. Every character is looked at once; inside strings the search jumps.
 *  2. On strict JSON the answer is exact. Tolerated besides: single quotes where a value may start,
 *     comments, bare words, a code fence around the body.
 *  3. At the first thing that is none of these the body is malformed: strings mean nothing any more.
 */

const QUOTE = 34;
const APOSTROPHE = 39;
const BACKSLASH = 92;

export class JsonScanner {
  /** The body is neither JSON nor a tolerated form of it: the next closing tag ends it. */
  malformed = false;
  /** It is malformed by more than a raw line break inside a string: beyond what repair may mend (P8). */
  illegal = false;
  /** Deepest nesting so far. */
  maxDepth = 0;
  #depth = 0;
  #quote = 0;
  #escaped = false;
  #comment: 'none' | 'line' | 'block' = 'none';
  /** A value has just ended: only `,` `:` a closing bracket or the end may follow. */
  #after = false;

  get inString(): boolean {
    return this.#quote !== 0 && !this.malformed;
  }

  /**
   * Reads `text` from `at` and stops at the next `<` that is not inside a string or comment.
   *
   * @returns the index of that `<`, or the length of the text
   */
  scan(text: string, at: number): number {
    let i = at;
    while (i < text.length) {
      if (this.malformed) {
        const next = text.indexOf('<', i);
        return next === -1 ? text.length : next;
      }
      if (this.#quote !== 0) {
        i = this.#scanString(text, i);
        continue;
      }
      if (this.#comment !== 'none') {
        i = this.#scanComment(text, i);
        continue;
      }
      const code = text.charCodeAt(i);
      if (code === 60) return i;
      i = this.#scanToken(text, i, code);
    }
    return i;
  }

  /** The `<` that `scan` stopped at is text: in JSON that is no token. */
  passLessThan(): void {
    this.#break();
  }

  #break(): void {
    if (!this.malformed) this.illegal = true;
    this.malformed = true;
  }

  #scanString(text: string, at: number): number {
    let i = at;
    if (this.#escaped) {
      this.#escaped = false;
      i += 1;
    }
    while (i < text.length) {
      const code = text.charCodeAt(i);
      if (code === this.#quote) {
        this.#quote = 0;
        this.#after = true;
        return i + 1;
      }
      if (code === BACKSLASH) {
        if (i + 1 === text.length) {
          this.#escaped = true;
          return i + 1;
        }
        i += 2;
        continue;
      }
      if (code === 10 || code === 13) {
        this.malformed = true;
        return i;
      }
      i += 1;
    }
    return i;
  }

  #scanComment(text: string, at: number): number {
    const end = this.#comment === 'line' ? '\n' : '/';
    const found = text.indexOf(end, at);
    if (found === -1) return text.length;
    // A block comment ends at `*/`; its `/` is the first one behind a `*` (one cut off by a chunk ends it too).
    if (this.#comment === 'block' && found > at && text.charCodeAt(found - 1) !== 42) return found + 1;
    this.#comment = 'none';
    return found + 1;
  }

  #scanToken(text: string, i: number, code: number): number {
    switch (code) {
      case 32:
      case 9:
      case 10:
      case 13:
      case 96: // a code fence around the body
        return i + 1;
      case 123:
      case 91:
        if (this.#after) this.#break();
        this.#depth += 1;
        this.maxDepth = Math.max(this.maxDepth, this.#depth);
        return i + 1;
      case 125:
      case 93:
        this.#depth -= 1;
        if (this.#depth < 0) this.#break();
        this.#after = true;
        return i + 1;
      case 44:
      case 58:
        this.#after = false;
        return i + 1;
      case QUOTE:
      case APOSTROPHE:
        if (this.#after) this.#break();
        else this.#quote = code;
        return i + 1;
      case 47:
        if (i + 1 < text.length) this.#comment = text.charCodeAt(i + 1) === 42 ? 'block' : 'line';
        else this.#comment = 'line';
        return i + 1;
      case 35:
        this.#comment = 'line';
        return i + 1;
      default:
        return this.#scanWord(text, i);
    }
  }

  /** A number or a bare word: outside any bracket it is the fence's language, inside a value or a key. */
  #scanWord(text: string, at: number): number {
    let i = at;
    while (i < text.length && isWord(text.charCodeAt(i))) i += 1;
    if (i === at) {
      this.#break();
      return at + 1;
    }
    if (this.#depth === 0) return i;
    // A word may go on in the next chunk: only one that starts right behind a finished value is out of place.
    if (this.#after) this.#break();
    return i;
  }
}

function isWord(code: number): boolean {
  return (
    (code >= 48 && code <= 57) ||
    (code >= 65 && code <= 90) ||
    (code >= 97 && code <= 122) ||
    code === 95 ||
    code === 43 ||
    code === 45 ||
    code === 46 ||
    code === 36
  );
}
