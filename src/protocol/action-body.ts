/** An action's body as a JSON object (P6, P8): strict, else mended, else refused with the place of the fault. */
import type { RejectionCode } from '../domain/action.ts';
import { isJsonObject } from '../domain/json.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { findJsonFault } from './json-fault.ts';
import { repairObject } from './json-repair.ts';

export type ReadBody =
  | { readonly ok: true; readonly body: JsonObject; readonly repaired: boolean }
  /** `index`: where in the body the fault is. */
  | { readonly ok: false; readonly code: RejectionCode; readonly message: string; readonly index: number };

/** @returns undefined for what is not strict JSON */
export function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

/** @param value what `parseJson` gave for the body; an empty body is `{}` */
export function strictBody(value: Json): ReadBody {
  if (!isJsonObject(value)) {
    return { ok: false, code: 'invalid_json', message: 'The body must be one JSON object', index: 0 };
  }
  return deeperThan(value, limits.jsonDepth) ? TOO_DEEP : { ok: true, body: value, repaired: false };
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
  if (body !== null) return deeperThan(body, limits.jsonDepth) ? TOO_DEEP : { ok: true, body, repaired: true };
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

/** Never recurses deeper than `depth`. */
function deeperThan(value: Json, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (depth === 0) return true;
  if (Array.isArray(value)) {
    for (const item of value) if (deeperThan(item, depth - 1)) return true;
    return false;
  }
  for (const key in value) if (deeperThan(value[key] ?? null, depth - 1)) return true;
  return false;
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
