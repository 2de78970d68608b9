/** An action's body as a JSON object (P6, P8): strict, else mended, else refused with the place of the fault. */
import type { RejectionCode } from '../../domain/action.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { mayHaveLostDigits, parseExactly } from './exact-json.ts';
import { findJsonFault } from './json-fault.ts';
import { repairObject } from './json-repair.ts';

export type ReadBody =
  | { readonly ok: true; readonly body: JsonObject; readonly repaired: boolean }
  /** `index`: where in the body the fault is. */
  | { readonly ok: false; readonly code: RejectionCode; readonly message: string; readonly index: number };

/** @param value what `parseJson` gave for the source; an empty body is `{}` */
export function strictBody(value: Json, source: string): ReadBody {
  if (!isJsonObject(value)) {
    return { ok: false, code: 'invalid_json', message: 'The body must be one JSON object', index: 0 };
  }
  const found = inspect(value, limits.jsonDepth);
  if (found === DEEP) return TOO_DEEP;
  const exact = found === INEXACT ? parseExactly(source) : value;
  return { ok: true, body: isJsonObject(exact) ? exact : value, repaired: false };
}

/**
 * A body that is not strict JSON.
 *
 * @param depth of its nesting, as far as it could be told
 * @param mend whether it may be mended
 */
export function brokenBody(source: string, depth: number, mend: boolean): ReadBody {
  if (depth > limits.jsonDepth) return TOO_DEEP;
  // The library recurses, so brackets are counted before it sees them.
  const body = mend && bracketDepth(source) <= limits.jsonDepth ? repairObject(source) : null;
  if (body !== null) return inspect(body, limits.jsonDepth) === DEEP ? TOO_DEEP : { ok: true, body, repaired: true };
  const fault = findJsonFault(source);
  return {
    ok: false,
    code: 'invalid_json',
    message: `The body is not a JSON object: ${fault?.reason ?? 'it cannot be read'}`,
    index: fault?.index ?? 0,
  };
}

const TOO_DEEP: ReadBody = {
  ok: false,
  code: 'too_deep',
  message: `The body is nested deeper than ${limits.jsonDepth} levels`,
  index: 0,
};

const FINE = 0;
const INEXACT = 1;
const DEEP = 2;

/** Whether a value is nested deeper than `depth`, or holds a number that may have lost digits. Never recurses deeper. */
function inspect(value: Json, depth: number): number {
  if (typeof value === 'number') return mayHaveLostDigits(value) ? INEXACT : FINE;
  if (typeof value !== 'object' || value === null) return FINE;
  if (depth === 0) return DEEP;
  let worst = FINE;
  if (Array.isArray(value)) {
    for (const item of value) worst = Math.max(worst, inspect(item, depth - 1));
  } else {
    for (const key in value) worst = Math.max(worst, inspect(value[key] ?? null, depth - 1));
  }
  return worst;
}

/** Upper bound of the nesting that a lenient reader could see. */
function bracketDepth(text: string): number {
  let depth = 0;
  let deepest = 0;
  for (const [bracket] of text.matchAll(/[{}[\]]/g)) {
    if (bracket === '{' || bracket === '[') deepest = Math.max(deepest, (depth += 1));
    else depth = Math.max(0, depth - 1);
  }
  return deepest;
}
