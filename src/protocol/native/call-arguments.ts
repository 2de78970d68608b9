/** The text of a native call's arguments: where it ends, whether all of it came, and how it is wrapped (P17). */
import { isJsonObject, parseJson } from '../../domain/json.ts';
import type { Json } from '../../domain/json.ts';

/** Empty text and `null` mean no arguments. Arguments encoded twice are decoded once. */
export function unwrapped(text: string): string {
  const source = text.trim();
  if (source === 'null') return '';
  if (!source.startsWith('"')) return source;
  const value = parseJson(source);
  return typeof value === 'string' ? value.trim() : source;
}

/** Whether the arguments are truncated: they must not run, even if repair could close the brackets (P8). */
export function isTruncated(source: string): boolean {
  if (source.startsWith('{') && new ArgumentsEndFinder().scan(source) === -1) return true;
  return source.includes('{') && !/[}`]$/.test(source);
}

/** The complete first key of an object. Names of parameters begin like identifiers. */
const FIRST_KEY = /^\s*\{\s*"([A-Za-z_$](?:[^"\\]|\\.)*)"/;
const KEY_START = /^\{\s*"[A-Za-z_$]/;

/** Whether a piece has the arguments from their beginning, and is not the continuation of the text before it (N4). */
export function beginsAgain(text: string, piece: string): boolean {
  if (!KEY_START.test(piece)) return false;
  const key = FIRST_KEY.exec(text)?.[1];
  return key === undefined ? piece.startsWith(text) : FIRST_KEY.exec(piece)?.[1] === key;
}

/** Whether a later snapshot of the arguments contains an earlier one: the same members or more, longer texts and lists. */
export function contains(later: Json, earlier: Json): boolean {
  if (earlier === null || earlier === later) return true;
  if (typeof earlier === 'string') return typeof later === 'string' && later.startsWith(earlier);
  if (Array.isArray(earlier)) {
    return Array.isArray(later) && earlier.every((item, at) => contains(later[at] ?? null, item));
  }
  return (
    isJsonObject(earlier) &&
    isJsonObject(later) &&
    Object.entries(earlier).every(([name, value]) => Object.hasOwn(later, name) && contains(later[name] ?? null, value))
  );
}

const SPACE = 32;
const QUOTE = 34;
const COMMA = 44;
const COLON = 58;
const OPEN_BRACKET = 91;
const BACKSLASH = 92;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;

/**
 * Finds the end of a JSON object that arrives in pieces, or of a JSON string with arguments that are encoded twice. Exact
 * for strict JSON; for other text the position may be wrong.
 */
export class ArgumentsEndFinder {
  #depth = 0;
  #inString = false;
  #escaped = false;
  #beginsWithQuote: boolean | null = null;
  #found = false;
  #last = 0;

  get isEncoded(): boolean {
    return this.#beginsWithQuote === true;
  }

  /** Whether a value may follow: an object that begins here can belong to the text before it. */
  get expectsValue(): boolean {
    return !this.#inString && (this.#last === COLON || this.#last === COMMA || this.#last === OPEN_BRACKET);
  }

  /** @returns the index after the last brace or quote, the first time it is found; otherwise -1 */
  scan(piece: string): number {
    if (this.#found) return -1;
    for (let index = 0; index < piece.length; index += 1) {
      const code = piece.charCodeAt(index);
      if (code > SPACE) {
        this.#beginsWithQuote ??= code === QUOTE;
        this.#last = code;
      }
      if (this.#escaped) this.#escaped = false;
      else if (this.#inString) {
        if (code === BACKSLASH) this.#escaped = true;
        else if (code === QUOTE) {
          this.#inString = false;
          if (this.isEncoded && this.#depth === 0) return this.#end(index);
        }
      } else if (code === QUOTE) this.#inString = true;
      else if (code === OPEN_BRACE) this.#depth += 1;
      else if (code === CLOSE_BRACE) {
        this.#depth -= 1;
        if (this.#depth <= 0) return this.#end(index);
      }
    }
    return -1;
  }

  #end(index: number): number {
    this.#found = true;
    return index + 1;
  }
}
