/** The closed tag set (P1, P2) and the attributes of an opening tag (P5). */

export const THOUGHT = 1;
/** `<think>` and `<thinking>`: where models draft (P9). */
export const REASONING = 2;
export const ACTION = 3;
export const RESPONSE = 4;
/** From here on the runtime's own tags, which have no effect when a model writes them (P2). */
export const FIRST_RUNTIME_TAG = 5;

const KINDS: ReadonlyMap<string, number> = new Map([
  ['thought', THOUGHT],
  ['think', REASONING],
  ['thinking', REASONING],
  ['action', ACTION],
  ['response', RESPONSE],
  ['context_feed', FIRST_RUNTIME_TAG],
  ['action_result', FIRST_RUNTIME_TAG + 1],
  ['results', FIRST_RUNTIME_TAG + 2],
  ['system', FIRST_RUNTIME_TAG + 3],
]);
const NAMES = [...KINDS.keys()];
/** The most likely ones, asked first where a chunk ends in a name. */
const USUAL_NAMES = ['action', 'response', 'thought'];
const LONGEST_NAME = Math.max(...NAMES.map((name) => name.length));

/** The text ends before it is decided whether a tag begins here. */
export const MORE = -1;
export const NO_TAG = 0;

const TAB = 9;
const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const SPACE = 32;
const SLASH = 47;
const GREATER = 62;
const UNDERSCORE = 95;

/** White space of the protocol: the ASCII kind. */
export function isSpace(code: number): boolean {
  return code === SPACE || (code >= TAB && code <= CARRIAGE_RETURN);
}

/**
 * Decides whether the `<` at `at` begins a tag of the closed set. A name counts only with what
 * ends it: white space, `>`, or the `/` of a self-closing tag.
 *
 * @returns `MORE`, `NO_TAG`, or a code for `tagKind`, `isClosing` and `headLength`
 */
export function matchTag(text: string, at: number): number {
  const end = text.length;
  let index = at + 1;
  if (index === end) return MORE;
  let code = text.charCodeAt(index);
  let closing = 0;
  if (code === SLASH) {
    closing = 1;
    index += 1;
    if (index === end) return MORE;
    code = text.charCodeAt(index);
  }
  const start = index;
  // The three names as they are usually written; everything else goes the long way.
  let kind = 0;
  switch (code) {
    case 97: // a
      if (text.startsWith('action', start)) kind = ACTION;
      index += 6;
      break;
    case 114: // r
      if (text.startsWith('response', start)) kind = RESPONSE;
      index += 8;
      break;
    case 116: // t
      if (text.startsWith('thought', start)) kind = THOUGHT;
      index += 7;
      break;
    case 65: // A
    case 67: // C
    case 82: // R
    case 83: // S
    case 84: // T
    case 99: // c
    case 115: // s
      break;
    default:
      return NO_TAG;
  }
  if (kind !== 0 && index < end) {
    code = text.charCodeAt(index);
    if (code === GREATER || code === SPACE) return (index - at) * 32 + kind * 2 + closing;
  }
  return matchName(text, at, start, closing);
}

function matchName(text: string, at: number, start: number, closing: number): number {
  const end = text.length;
  let index = start;
  let code = 0;
  const stop = Math.min(end, start + LONGEST_NAME + 1);
  while (index < stop) {
    code = text.charCodeAt(index);
    const letter = code | 32;
    if (!((letter >= 97 && letter <= 122) || code === UNDERSCORE)) break;
    index += 1;
  }
  const written = text.slice(start, index);
  if (index === end) for (const known of USUAL_NAMES) if (known.startsWith(written)) return MORE;
  const name = written.toLowerCase();
  if (index === end) return NAMES.some((known) => known.startsWith(name)) ? MORE : NO_TAG;
  const kind = KINDS.get(name);
  if (kind === undefined) return NO_TAG;
  const ends = code === GREATER || isSpace(code) || (code === SLASH && closing === 0);
  return ends ? (index - at) * 32 + kind * 2 + closing : NO_TAG;
}

export function tagKind(tag: number): number {
  return (tag >> 1) & 15;
}

export function isClosing(tag: number): boolean {
  return (tag & 1) === 1;
}

/** Length of `<name` or `</name`. */
export function headLength(tag: number): number {
  return tag >> 5;
}

// Where in an opening tag the scanner stands.
const BETWEEN = 0;
const EQUALS = 1;
const BARE = 2;
const QUOTED = 3;
const BRACKET = 4;
const BRACKET_QUOTED = 5;
/** `"["a","b"]"`: a list quoted with the quotes that it holds. */
const QUOTED_LIST = 6;
/** A `>` inside quotes: the end of the tag if the body's `{` follows, as when the closing quote was forgotten. */
const DOUBTFUL_END = 7;

const QUOTE = 34;
const APOSTROPHE = 39;
const LESS = 60;
const EQUALS_SIGN = 61;
const OPEN_BRACKET = 91;
const BACKSLASH = 92;
const CLOSE_BRACKET = 93;
const OPEN_BRACE = 123;

/**
 * Finds the end of an action's opening tag, whose attribute values may hold `>`. Resumable: the text
 * may come in pieces.
 */
export class TagEnd {
  #state = BETWEEN;
  #resume = BETWEEN;
  #quote = 0;
  #previous = 0;
  /** Offset, in the attribute text so far, of a `>` that turned out to end the tag; -1 otherwise. */
  doubtfulAt = -1;
  /** Characters of the attribute text that were read. */
  #chars = 0;

  reset(): void {
    this.#state = BETWEEN;
    this.#previous = 0;
    this.#chars = 0;
    this.doubtfulAt = -1;
  }

  /** A `>` was seen that may have been the end: every character counts now. */
  get doubts(): boolean {
    return this.#state === DOUBTFUL_END;
  }

  /** Reads what has come since, up to the end of the attribute text so far; there is no bracket in it. */
  catchUp(attributes: string): void {
    if (this.#chars < attributes.length) this.scan(attributes, this.#chars, attributes.length);
  }

  /** Whether the tag ended by itself right after a `/`, outside every quote. */
  get selfClosing(): boolean {
    return this.#previous === SLASH && (this.#state === BETWEEN || this.#state === BARE);
  }

  /**
   * @returns the index of the `>` or `<` to look at, or of the `{` that proves a doubtful end
   *   (`doubtfulAt` is set then), or `to`
   */
  scan(text: string, from: number, to: number): number {
    let index = from;
    for (; index < to; index += 1) {
      const code = text.charCodeAt(index);
      if (this.#state === DOUBTFUL_END) {
        if (isSpace(code)) continue;
        if (code === OPEN_BRACE) break;
        this.#state = this.#resume;
        this.doubtfulAt = -1;
      }
      const before = this.#previous;
      switch (this.#state) {
        case BETWEEN:
          if (code === GREATER || code === LESS) return this.#stop(index, from);
          if (code === EQUALS_SIGN) this.#state = EQUALS;
          break;
        case EQUALS:
          if (code === GREATER || code === LESS) return this.#stop(index, from);
          if (code === QUOTE || code === APOSTROPHE) {
            this.#state = QUOTED;
            this.#quote = code;
          } else if (code === OPEN_BRACKET) this.#state = BRACKET;
          else if (!isSpace(code)) this.#state = BARE;
          break;
        case BARE:
          if (code === GREATER || code === LESS) return this.#stop(index, from);
          if (isSpace(code)) this.#state = BETWEEN;
          break;
        case QUOTED:
          if (code === this.#quote && before !== BACKSLASH) this.#state = BETWEEN;
          else if (code === OPEN_BRACKET && before === this.#quote) this.#state = QUOTED_LIST;
          else if (code === GREATER) this.#doubt(index, from);
          else if (code === LESS && before === LINE_FEED) return this.#stop(index, from);
          break;
        case BRACKET:
          if (code === GREATER || code === LESS) return this.#stop(index, from);
          if (code === CLOSE_BRACKET) this.#state = BETWEEN;
          else if (code === QUOTE || code === APOSTROPHE) {
            this.#state = BRACKET_QUOTED;
            this.#quote = code;
          }
          break;
        case BRACKET_QUOTED:
          if (code === this.#quote) this.#state = BRACKET;
          else if (code === GREATER) this.#doubt(index, from);
          else if (code === LESS && before === LINE_FEED) return this.#stop(index, from);
          break;
        case QUOTED_LIST:
          if (before === CLOSE_BRACKET) {
            // `"[1, 2].size() > 1"` only looked like a list.
            this.#state = code === this.#quote ? BETWEEN : QUOTED;
            if (code === GREATER) this.#doubt(index, from);
          } else if (code === GREATER || code === LESS) return this.#stop(index, from);
          break;
      }
      this.#previous = code;
    }
    this.#chars += index - from;
    return index;
  }

  /** The character at which `scan` stopped is an ordinary one. */
  skip(code: number): void {
    if (this.#state === EQUALS) this.#state = BARE;
    this.#previous = code;
    this.#chars += 1;
  }

  #doubt(index: number, from: number): void {
    this.#resume = this.#state;
    this.#state = DOUBTFUL_END;
    this.doubtfulAt = this.#chars + index - from;
  }

  #stop(index: number, from: number): number {
    this.#chars += index - from;
    return index;
  }
}

/**
 * Reads what stands between a tag's name and its `>`, in every form of P5.
 *
 * @param take called with every name, as written, and its value; a name without a value stands for `true`
 */
export function readAttributes(text: string, take: (name: string, value: string) => void): void {
  let index = skipSpace(text, 0);
  while (index < text.length) {
    const start = index;
    while (index < text.length && text[index] !== '=' && !isSpace(text.charCodeAt(index))) index += 1;
    const name = wordIn(text, start, index);
    index = skipSpace(text, index);
    let value = 'true';
    if (text[index] === '=') {
      const [from, to, next] = valueSpan(text, skipSpace(text, index + 1));
      value = decode(text.slice(from, to));
      index = skipSpace(text, next);
    }
    if (name !== '') take(name, value);
  }
}

/** `dependsOn`, `depends-on` and `Depends_On` are `depends_on`. */
export function snakeCase(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll('-', '_')
    .toLowerCase();
}

/** From the first word character of a stretch to its last one. */
function wordIn(text: string, start: number, end: number): string {
  let from = start;
  let to = end;
  while (from < to && !isWordCharacter(text.charCodeAt(from))) from += 1;
  while (to > from && !isWordCharacter(text.charCodeAt(to - 1))) to -= 1;
  return text.slice(from, to);
}

/** The ASCII letters and digits, and `_`. */
export function isWordCharacter(code: number): boolean {
  const letter = code | 32;
  return (letter >= 97 && letter <= 122) || (code >= 48 && code <= 57) || code === UNDERSCORE;
}

function skipSpace(text: string, from: number): number {
  let index = from;
  while (index < text.length && isSpace(text.charCodeAt(index))) index += 1;
  return index;
}

/** `[from, to)` of the value that begins at `at`, and where to go on. */
function valueSpan(text: string, at: number): [from: number, to: number, next: number] {
  const first = text[at];
  if (first === '"' || first === "'") {
    if (text[at + 1] === '[') {
      const end = text.indexOf(']', at);
      if (end === -1) return [at + 1, text.length, text.length];
      if (text[end + 1] === first) return [at + 1, end + 1, end + 2];
    }
    let end = text.indexOf(first, at + 1);
    while (end !== -1 && text[end - 1] === '\\') end = text.indexOf(first, end + 1);
    return end === -1 ? [at + 1, text.length, text.length] : [at + 1, end, end + 1];
  }
  let index = at;
  if (first === '[') {
    let quote = '';
    for (; index < text.length; index += 1) {
      const character = text.charAt(index);
      if (quote !== '') quote = character === quote ? '' : quote;
      else if (character === '"' || character === "'") quote = character;
      else if (character === ']') return [at, index + 1, index + 1];
    }
    return [at, index, index];
  }
  while (index < text.length && !isSpace(text.charCodeAt(index))) index += 1;
  return [at, index, index];
}

const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'", '#39': "'" };

function decode(value: string): string {
  const plain = value.includes('\\') ? value.replace(/\\(["'])/g, '$1') : value;
  if (!plain.includes('&')) return plain;
  return plain.replace(/&(lt|gt|amp|quot|apos|#39);/g, (entity, name: string) => ENTITIES[name] ?? entity);
}
