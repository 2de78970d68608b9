/**
 * Reads an action's body as it arrives and answers one question: is the next character inside a JSON string (P7)?
 * Accepts the non-strict JSON that models write: single quotes where a value may start, comments, bare words,
 * trailing commas, a code fence around the whole body.
 *
 * Owns only its state; the body itself is kept elsewhere.
 *
 * Invariants:
 *  1. The answer is exact for every prefix of strict JSON.
 *  2. Each character is read once, however the body was cut.
 *  3. A malformed body stays malformed, from the first token that tolerant JSON does not allow, or from a raw line
 *     break inside a string.
 */
import {
  ASTERISK,
  BACKSLASH,
  BACKTICK,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  DOLLAR,
  DOUBLE_QUOTE,
  LINE_FEED,
  OPEN_BRACE,
  OPEN_BRACKET,
  SINGLE_QUOTE,
  SLASH,
  isSpace,
  isWordCharacter,
} from '../characters.ts';

/** Numbers, because a step runs for every character. */
const State = {
  /** Before the outermost bracket. */
  start: 0,
  /** A value, a key or a closing bracket may follow. */
  expect: 1,
  /** A value or a key has ended. */
  after: 2,
  word: 3,
  string: 4,
  escape: 5,
  /** After a `/` that must begin a comment. */
  slash: 6,
  lineComment: 7,
  blockComment: 8,
  blockCommentStar: 9,
  fenceRun: 10,
  fenceInfo: 11,
  /** The outermost bracket has closed. */
  end: 12,
  malformed: 13,
  /** Like `malformed`, caused by a raw line break inside a string. */
  malformedString: 14,
} as const;
type State = (typeof State)[keyof typeof State];

export class JsonScanner {
  #state: State = State.start;
  /** Where a comment returns to. */
  #outer: State = State.start;
  #quote = 0;
  #depth = 0;
  #run = 0;
  #lineBlank = true;
  /** Deepest nesting so far; exact until the body is malformed. */
  maxDepth = 0;
  /** Whether anything was scanned. */
  used = false;

  reset(): void {
    this.#state = State.start;
    this.#outer = State.start;
    this.#depth = 0;
    this.#run = 0;
    this.#lineBlank = true;
    this.maxDepth = 0;
    this.used = false;
  }

  get malformed(): boolean {
    return this.#state === State.malformed || this.#state === State.malformedString;
  }

  /** Whether the next character is inside a string; false for a malformed body. */
  get inString(): boolean {
    return this.#state === State.string || this.#state === State.escape;
  }

  /**
   * Whether a tag here cannot end the action: it is inside a string, or follows a raw line break in a string and is
   * not the first on its line.
   */
  get hidesTag(): boolean {
    return this.inString || (this.#state === State.malformedString && !this.#lineBlank);
  }

  /** Stops reading JSON: the next closing tag ends the body. */
  giveUp(): void {
    this.used = true;
    this.#state = State.malformed;
  }

  scan(text: string): void {
    this.used = true;
    let state = this.#state;
    const end = text.length;
    let index = 0;
    scanning: while (index < end) {
      const code = text.charCodeAt(index);
      switch (state) {
        case State.string:
          if (code === BACKSLASH) state = State.escape;
          else if (code === this.#quote) state = State.after;
          else if (code === LINE_FEED) {
            state = State.malformedString;
            break scanning;
          }
          break;
        case State.escape:
          state = State.string;
          break;
        case State.start:
        case State.end:
          if (isSpace(code)) break;
          if (state === State.start && (code === OPEN_BRACE || code === OPEN_BRACKET)) {
            state = this.#open();
          } else if (code === SLASH) {
            this.#outer = state;
            state = State.slash;
          } else if (code === BACKTICK) {
            this.#outer = state;
            this.#run = 1;
            state = State.fenceRun;
          } else state = State.malformed;
          break;
        case State.expect:
          if (isSpace(code)) break;
          if (code === DOUBLE_QUOTE || code === SINGLE_QUOTE) {
            this.#quote = code;
            state = State.string;
          } else if (code === OPEN_BRACE || code === OPEN_BRACKET) state = this.#open();
          else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) state = this.#close();
          else if (code === SLASH) {
            this.#outer = state;
            state = State.slash;
          } else state = isWordOfModel(code) ? State.word : State.malformed;
          break;
        case State.word:
          if (isWordOfModel(code)) break;
          state = State.after;
          continue;
        case State.after:
          if (isSpace(code)) break;
          if (code === COMMA || code === COLON) state = State.expect;
          else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) state = this.#close();
          else if (code === SLASH) {
            this.#outer = state;
            state = State.slash;
          } else state = State.malformed;
          break;
        case State.slash:
          if (code === SLASH) state = State.lineComment;
          else state = code === ASTERISK ? State.blockComment : State.malformed;
          break;
        case State.lineComment:
          if (code === LINE_FEED) state = this.#outer;
          break;
        case State.blockComment:
          if (code === ASTERISK) state = State.blockCommentStar;
          break;
        case State.blockCommentStar:
          if (code === SLASH) state = this.#outer;
          else if (code !== ASTERISK) state = State.blockComment;
          break;
        case State.fenceRun:
          if (code === BACKTICK) this.#run += 1;
          else if (this.#run < 3) state = State.malformed;
          else {
            state = State.fenceInfo;
            continue;
          }
          break;
        case State.fenceInfo:
          if (code === LINE_FEED) state = this.#outer;
          else if (code === OPEN_BRACE && this.#outer === State.start) state = this.#open();
          break;
        default:
          break scanning;
      }
      index += 1;
    }
    this.#state = state;
    if (state === State.malformedString) this.#trackLine(text.slice(index));
  }

  #open(): State {
    this.#depth += 1;
    if (this.#depth > this.maxDepth) this.maxDepth = this.#depth;
    return State.expect;
  }

  #close(): State {
    if (this.#depth === 0) return State.malformed;
    this.#depth -= 1;
    return this.#depth === 0 ? State.end : State.after;
  }

  #trackLine(text: string): void {
    const lineFeed = text.lastIndexOf('\n');
    if (lineFeed !== -1) this.#lineBlank = true;
    if (this.#lineBlank && text.slice(lineFeed + 1).trim() !== '') this.#lineBlank = false;
  }
}

/** Characters that models use in bare numbers and names, and everything beyond ASCII. */
function isWordOfModel(code: number): boolean {
  return isWordCharacter(code) || code === HYPHEN || code === PLUS || code === DOT || code === DOLLAR || code > 127;
}

const PLUS = 43;
const HYPHEN = 45;
const DOT = 46;
