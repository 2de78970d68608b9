/**
 * Redacts a text that is a JSON object or array as a whole (C9): its strings are redacted without their escapes, and the
 * result is JSON again.
 */
import { exceededLimit, parseJson } from '../domain/json.ts';
import type { Json } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { redactJson } from './redact-json.ts';

/** The value of the text; undefined if it is not such JSON, or too long or too deep. */
export function valueOfText(text: string): Json | undefined {
  if (text.length > limits.redactJsonChars || !/^\s*[[{]/.test(text)) return undefined;
  if (exceededLimit(text, { depth: limits.outcomeDepth - 1 }) !== null) return undefined;
  return parseJson(text);
}

/** The redacted text; null if nothing in the value was redacted. A number with a match becomes a string. */
export function redactedTextJson(text: string, value: Json, redact: (text: string) => string): string | null {
  const safe = redactJson(value, redact, { numbers: true });
  return safe === value ? null : JSON.stringify(safe, null, /^\s*[[{]\r?\n([ \t]+)/.exec(text)?.[1] ?? '');
}
