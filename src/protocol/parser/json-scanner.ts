/**
 * Reads an action's body as it arrives and says one thing: does the next character stand inside a
 * JSON string (P7)? Tolerates what models write instead of strict JSON: single quotes where a value
 * may start, comments, bare words, trailing commas, a code fence around the whole.
 *
 * Owns nothing but its state; the body itself is kept elsewhere.
 *
 * Invariants:
 *  1. On every prefix of strict JSON the answer is exact.
 *  2. Each character is looked at once, however the body was cut.
 *  3. Once malformed, always malformed: at the first token that tolerant JSON has no place for, or at
 *     a raw line break inside a string.
 */
import { isSpace } from './tags.ts';

const START = 0;
const FENCE_RUN = 1;
const FENCE_INFO = 2;
/** A value, a key or a closing bracket may stand here. */
const EXPECT = 3;
/** A value or a key has ended. */
const AFTER = 4;
const WORD = 5;
const STRING = 6;
const ESCAPE = 7;
const SLASH_SEEN = 8;
const LINE_COMMENT = 9;
const BLOCK_COMMENT = 10;
const BLOCK_COMMENT_STAR = 11;
/** The outermost bracket has closed. */
const END = 12;
const MALFORMED = 13;
const MALFORMED_STRING = 14;

const LINE_FEED = 10;
const QUOTE = 34;
const APOSTROPHE = 39;
const ASTERISK = 42;
const COMMA = 44;
const SLASH = 47;
const COLON = 58;
const OPEN_BRACKET = 91;
const BACKSLASH = 92;
const CLOSE_BRACKET = 93;
const BACKTICK = 96;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;

export class JsonScanner {
  #state = START;
  /** Where a comment returns to. */
  #outer = START;
  #quote = 0;
  #depth = 0;
  #run = 0;
  #lineBlank = true;
  /** Deepest nesting so far; exact until the body is malformed. */
  maxDepth = 0;
  /** Anything was scanned at all. */
  used = false;

  reset(): void {
    this.#state = START;
    this.#outer = START;
    this.#depth = 0;
    this.#run = 0;
    this.#lineBlank = true;
    this.maxDepth = 0;
    this.used = false;
  }

  get malformed(): boolean {
    return this.#state >= MALFORMED;
  }

  /** The next character stands inside a string; false once the body is malformed. */
  get inString(): boolean {
    return this.#state === STRING || this.#state === ESCAPE;
  }

  /**
   * A tag here cannot end the action: it stands in a string, or in what a raw line break left of one
   * and not first on its line.
   */
  get hidesTag(): boolean {
    return this.inString || (this.#state === MALFORMED_STRING && !this.#lineBlank);
  }

  /** Nothing that follows is JSON: the next closing tag ends the body. */
  giveUp(): void {
    this.used = true;
    this.#state = MALFORMED;
  }

  scan(text: string): void {
    this.used = true;
    let state = this.#state;
    const end = text.length;
    let index = 0;
    scanning: while (index < end) {
      const code = text.charCodeAt(index);
      switch (state) {
        case STRING:
          if (code === BACKSLASH) state = ESCAPE;
          else if (code === this.#quote) state = AFTER;
          else if (code === LINE_FEED) {
            state = MALFORMED_STRING;
            break scanning;
          }
          break;
        case ESCAPE:
          state = STRING;
          break;
        case START:
        case END:
          if (isSpace(code)) break;
          if (state === START && (code === OPEN_BRACE || code === OPEN_BRACKET)) {
            state = this.#open();
          } else if (code === SLASH) {
            this.#outer = state;
            state = SLASH_SEEN;
          } else if (code === BACKTICK) {
            this.#outer = state;
            this.#run = 1;
            state = FENCE_RUN;
          } else state = MALFORMED;
          break;
        case EXPECT:
          if (isSpace(code)) break;
          if (code === QUOTE || code === APOSTROPHE) {
            this.#quote = code;
            state = STRING;
          } else if (code === OPEN_BRACE || code === OPEN_BRACKET) state = this.#open();
          else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) state = this.#close();
          else if (code === SLASH) {
            this.#outer = state;
            state = SLASH_SEEN;
          } else state = isWordCharacter(code) ? WORD : MALFORMED;
          break;
        case WORD:
          if (isWordCharacter(code)) break;
          state = AFTER;
          continue;
        case AFTER:
          if (isSpace(code)) break;
          if (code === COMMA || code === COLON) state = EXPECT;
          else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) state = this.#close();
          else if (code === SLASH) {
            this.#outer = state;
            state = SLASH_SEEN;
          } else state = MALFORMED;
          break;
        case SLASH_SEEN:
          if (code === SLASH) state = LINE_COMMENT;
          else state = code === ASTERISK ? BLOCK_COMMENT : MALFORMED;
          break;
        case LINE_COMMENT:
          if (code === LINE_FEED) state = this.#outer;
          break;
        case BLOCK_COMMENT:
          if (code === ASTERISK) state = BLOCK_COMMENT_STAR;
          break;
        case BLOCK_COMMENT_STAR:
          if (code === SLASH) state = this.#outer;
          else if (code !== ASTERISK) state = BLOCK_COMMENT;
          break;
        case FENCE_RUN:
          if (code === BACKTICK) this.#run += 1;
          else if (this.#run < 3) state = MALFORMED;
          else {
            state = FENCE_INFO;
            continue;
          }
          break;
        case FENCE_INFO:
          if (code === LINE_FEED) state = this.#outer;
          else if (code === OPEN_BRACE && this.#outer === START) state = this.#open();
          break;
        default:
          break scanning;
      }
      index += 1;
    }
    this.#state = state;
    if (state === MALFORMED_STRING) this.#trackLine(text.slice(index));
  }

  #open(): number {
    this.#depth += 1;
    if (this.#depth > this.maxDepth) this.maxDepth = this.#depth;
    return EXPECT;
  }

  #close(): number {
    if (this.#depth === 0) return MALFORMED;
    this.#depth -= 1;
    return this.#depth === 0 ? END : AFTER;
  }

  #trackLine(text: string): void {
    const lineFeed = text.lastIndexOf('\n');
    if (lineFeed !== -1) this.#lineBlank = true;
    if (this.#lineBlank && text.slice(lineFeed + 1).trim() !== '') this.#lineBlank = false;
  }
}

/** Letters, digits and what numbers and names of models hold; everything beyond ASCII. */
function isWordCharacter(code: number): boolean {
  const letter = code | 32;
  return (
    (letter >= 97 && letter <= 122) ||
    (code >= 48 && code <= 57) ||
    code === 45 ||
    code === 43 ||
    code === 46 ||
    code === 95 ||
    code === 36 ||
    code > 127
  );
}
