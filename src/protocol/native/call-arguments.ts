/** The text of a native call's arguments: where it ends, whether all of it came, and how it is wrapped (P17). */
import { parseJson } from '../../domain/json.ts';

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
  if (source.startsWith('{') && new ObjectEndFinder().scan(source) === -1) return true;
  return source.includes('{') && !/[}`]$/.test(source);
}

const QUOTE = 34;
const BACKSLASH = 92;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;

/**
 * Finds the end of a JSON object that arrives in pieces. Exact for strict JSON; for other text the position may be
 * wrong.
 */
export class ObjectEndFinder {
  #depth = 0;
  #inString = false;
  #escaped = false;
  #found = false;

  /** @returns the index after the object's last brace, the first time it is found; otherwise -1 */
  scan(piece: string): number {
    if (this.#found) return -1;
    for (let index = 0; index < piece.length; index += 1) {
      const code = piece.charCodeAt(index);
      if (this.#escaped) this.#escaped = false;
      else if (this.#inString) {
        if (code === QUOTE) this.#inString = false;
        else if (code === BACKSLASH) this.#escaped = true;
      } else if (code === QUOTE) this.#inString = true;
      else if (code === OPEN_BRACE) this.#depth += 1;
      else if (code === CLOSE_BRACE) {
        this.#depth -= 1;
        if (this.#depth <= 0) {
          this.#found = true;
          return index + 1;
        }
      }
    }
    return -1;
  }
}
