/**
 * JSON whose numbers keep their digits (P12): what JavaScript's numbers cannot hold, such as an id of twenty
 * digits, stays the text that was written. A wrong digit in an id is worse than a text where a number was meant.
 */
import type { Json } from '../../domain/json.ts';

/** Whether a number is so large that digits of it may have been lost. */
export function mayHaveLostDigits(value: number): boolean {
  return value > Number.MAX_SAFE_INTEGER || value < Number.MIN_SAFE_INTEGER;
}

/**
 * As `JSON.parse`, for more time; call it where `mayHaveLostDigits` says so.
 *
 * @throws SyntaxError for what is not strict JSON
 */
export function parseExactly(text: string): Json {
  return JSON.parse(text, keepDigits) as Json;
}

/** What the engine tells a reviver of a value that is neither array nor object. */
interface ValueContext {
  readonly source?: string;
}

function keepDigits(_key: string, value: Json, context?: ValueContext): Json {
  if (typeof value !== 'number' || !mayHaveLostDigits(value) || context?.source === undefined) return value;
  const { source } = context;
  // `1e21` asks for no digits that it has not got; `1e400` is no number at all.
  const exact = Number.isFinite(value) && (/e/i.test(source) || String(value) === source);
  return exact ? value : source;
}
