/** A JSON value as `JSON.parse` returns it. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** A JSON object. Read own properties only: keys such as `__proto__` may come from a model. */
export type JsonObject = { [key: string]: Json };

/** @returns undefined if the text is not strict JSON */
export function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

/** @returns null if the text is not a strict JSON object */
export function parseObject(text: string): JsonObject | null {
  const value = parseJson(text);
  return isJsonObject(value) ? value : null;
}

/** Narrows an unknown value to a plain JSON object (not null, not an array). */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Limits of a JSON text: depth, number of values, and members per object. */
export interface JsonTextLimits {
  readonly depth: number;
  readonly values?: number;
  readonly members?: number;
}

/**
 * The limit that a JSON text exceeds, or null. Only counts brackets and commas, so that deep or large texts never reach
 * a recursive parser. Does not check whether the text is valid JSON.
 */
export function exceededLimit(
  text: string,
  { depth, values: mostValues = Infinity, members: mostMembers = Infinity }: JsonTextLimits,
): keyof JsonTextLimits | null {
  let values = 1;
  const open: { readonly isMap: boolean; members: number }[] = [];
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at += 1;
      while (at < text.length && text.charCodeAt(at) !== QUOTE) at += text.charCodeAt(at) === BACKSLASH ? 2 : 1;
    } else if (code === OPENING_BRACE || code === OPENING_BRACKET) {
      open.push({ isMap: code === OPENING_BRACE, members: 1 });
      values += 1;
      if (open.length > depth) return 'depth';
    } else if (code === CLOSING_BRACE || code === CLOSING_BRACKET) open.pop();
    else if (code === COMMA) {
      values += 1;
      if (values > mostValues) return 'values';
      const around = open.at(-1);
      if (around === undefined) continue;
      around.members += 1;
      if (around.isMap && around.members > mostMembers) return 'members';
    }
  }
  return null;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;
const OPENING_BRACKET = 0x5b;
const CLOSING_BRACKET = 0x5d;
