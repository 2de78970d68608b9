/**
 * JSON that keeps the digits of its numbers (P12). A number that JavaScript cannot represent, such as a 20-digit id,
 * becomes its source text as a string. A wrong digit in an id is worse than a string instead of a number.
 */
import type { Json } from '../../../domain/json.ts';

/** Whether a number is so large that it may have lost digits. */
export function mayHaveLostDigits(value: number): boolean {
  return value > Number.MAX_SAFE_INTEGER || value < Number.MIN_SAFE_INTEGER;
}

/**
 * Like `JSON.parse`, but slower. Call it if `mayHaveLostDigits` returns true.
 *
 * @throws SyntaxError if the text is not strict JSON
 */
export function parseExactly(text: string): Json {
  return JSON.parse(text, keepDigits) as Json;
}

/** The context that a reviver receives for a primitive value. */
interface ValueContext {
  readonly source?: string;
}

function keepDigits(_key: string, value: Json, context?: ValueContext): Json {
  if (typeof value !== 'number' || !mayHaveLostDigits(value) || context?.source === undefined) return value;
  const { source } = context;
  // `1e21` has no lost digits; `1e400` is not a finite number.
  const exact = Number.isFinite(value) && (/e/i.test(source) || String(value) === source);
  return exact ? value : source;
}
