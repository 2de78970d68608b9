/** Copies of JSON values with a limited size: a value with shared parts can be huge as text. */
import type { Json, JsonObject } from '../domain/json.ts';

/** Characters of a string beyond the cut that `redact` sees, because a secret may end there. */
const REDACTION_MARGIN_CHARS = 4_096;

/** Maximum depth of a copy; deeper parts are replaced by a marker. */
const COPY_DEPTH = 48;

export interface CutJson {
  readonly value: JsonObject;
  /** Whether anything was left out; markers in the value say where. */
  readonly isCut: boolean;
}

/**
 * A copy of an object whose JSON has about `maxChars` characters at most: longer strings end with a marker, and a marker
 * replaces the items and members that do not fit. Reads no more than it copies.
 *
 * @param redact removes secrets from names and strings, before they are cut
 */
export function cutJson(
  object: JsonObject,
  maxChars: number,
  redact: (text: string) => string = (text) => text,
): CutJson {
  let left = maxChars;
  let isCut = false;
  const marked = (marker: string): string => {
    isCut = true;
    return `[cut: ${marker}]`;
  };
  const string = (text: string): string => {
    const seen = text.slice(0, left + REDACTION_MARGIN_CHARS);
    const safe = redact(seen);
    // The end of what was seen may be the beginning of a secret, and redaction may have moved it before the cut.
    const known = seen.length === text.length ? safe.length : safe.length - REDACTION_MARGIN_CHARS;
    const shown = safe.slice(0, Math.max(0, Math.min(left, known))).toWellFormed();
    const isWhole = shown.length === safe.length && seen.length === text.length;
    left -= shown.length + 2;
    return isWhole ? shown : `${shown}${marked(`${text.length} characters`)}`;
  };
  const members = (value: JsonObject, depth: number): JsonObject => {
    const copied: [string, Json][] = [];
    for (const key in value) {
      if (!Object.hasOwn(value, key)) continue;
      if (left <= 0) {
        copied.push(['…', marked('further members')]);
        break;
      }
      copied.push([string(key), copy(value[key] ?? null, depth + 1)]);
    }
    // fromEntries defines own properties, even for `__proto__`.
    return Object.fromEntries(copied);
  };
  const copy = (value: Json, depth: number): Json => {
    left -= 2;
    if (typeof value === 'string') return string(value);
    if (typeof value !== 'object' || value === null) {
      left -= 4;
      return value;
    }
    if (depth >= COPY_DEPTH) return marked('nested too deeply');
    if (!Array.isArray(value)) return members(value as JsonObject, depth);
    const items: Json[] = [];
    for (const item of value) {
      if (left <= 0) {
        items.push(marked(`${value.length - items.length} further items`));
        break;
      }
      items.push(copy(item, depth + 1));
    }
    return items;
  };
  const value = members(object, 0);
  return { value, isCut };
}
