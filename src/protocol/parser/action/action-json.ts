/** Reads an action's body as a JSON object (P6, P8): strict, or repaired, or rejected with the error's position. */
import type { RejectionCode } from '../../../domain/action.ts';
import { isJsonObject, parseJson } from '../../../domain/json.ts';
import type { Json, JsonObject } from '../../../domain/json.ts';
import { limits } from '../../../domain/limits.ts';
import { mayHaveLostDigits, parseExactly } from './exact-json.ts';
import { findJsonError } from './json-error.ts';
import { repairObject } from './json-repair.ts';

/** A body as text, with the facts already known about it. */
export interface BodyText {
  readonly source: string;
  /** Its value, if it is already known to be strict JSON. */
  readonly value: Json | undefined;
  /** Nesting depth of its brackets; an estimate if the text is not strict JSON. */
  readonly depth: number;
}

/** The number of characters of bodies that may still be repaired (P8). */
export interface RepairBudget {
  charsLeft: number;
}

export type ReadBody =
  | { readonly ok: true; readonly body: JsonObject; readonly repaired: boolean }
  /** `index`: position of the error in the body. */
  | { readonly ok: false; readonly code: RejectionCode; readonly message: string; readonly index: number };

/** @param repair null in strict mode */
export function readBody(text: BodyText, repair: RepairBudget | null): ReadBody {
  const { source } = text;
  const value = text.value ?? parseJson(source) ?? (source.trim() === '' ? {} : undefined);
  if (value !== undefined) return strictBody(value, source);
  if (text.depth > limits.jsonDepth) return TOO_DEEP;
  const body = repair === null ? null : repairBody(source, repair);
  if (body !== null) return inspect(body, limits.jsonDepth) === 'deep' ? TOO_DEEP : { ok: true, body, repaired: true };
  const error = findJsonError(source);
  return {
    ok: false,
    code: 'invalid_json',
    message: `The body is not a JSON object: ${error?.reason ?? 'it is not valid JSON'}`,
    index: error?.index ?? 0,
  };
}

function strictBody(value: Json, source: string): ReadBody {
  if (!isJsonObject(value)) {
    return { ok: false, code: 'invalid_json', message: 'The body must be one JSON object', index: 0 };
  }
  const found = inspect(value, limits.jsonDepth);
  if (found === 'deep') return TOO_DEEP;
  const exact = found === 'inexact' ? parseExactly(source) : value;
  return { ok: true, body: isJsonObject(exact) ? exact : value, repaired: false };
}

function repairBody(source: string, repair: RepairBudget): JsonObject | null {
  if (source.length > repair.charsLeft) return null;
  repair.charsLeft -= source.length;
  // The library is recursive, so the bracket depth is checked first.
  return bracketDepth(source) <= limits.jsonDepth ? repairObject(source) : null;
}

const TOO_DEEP: ReadBody = {
  ok: false,
  code: 'too_deep',
  message: `The body is nested deeper than ${limits.jsonDepth} levels`,
  index: 0,
};

/** `inexact`: a number may have lost digits. `deep`: nested too deeply. */
type Finding = 'fine' | 'inexact' | 'deep';

/** Checks nesting against `depth`, and whether a number may have lost digits. Recursion stops at `depth`. */
function inspect(value: Json, depth: number): Finding {
  if (typeof value === 'number') return mayHaveLostDigits(value) ? 'inexact' : 'fine';
  if (typeof value !== 'object' || value === null) return 'fine';
  if (depth === 0) return 'deep';
  let worst: Finding = 'fine';
  if (Array.isArray(value)) {
    for (const item of value) worst = worse(worst, inspect(item, depth - 1));
  } else {
    for (const key in value) worst = worse(worst, inspect(value[key] ?? null, depth - 1));
  }
  return worst;
}

function worse(one: Finding, other: Finding): Finding {
  if (one === 'deep' || other === 'fine') return one;
  return other;
}

/** Upper bound of the nesting depth that a lenient parser could see. */
function bracketDepth(text: string): number {
  let depth = 0;
  let deepest = 0;
  for (const [bracket] of text.matchAll(/[{}[\]]/g)) {
    if (bracket === '{' || bracket === '[') deepest = Math.max(deepest, (depth += 1));
    else depth = Math.max(0, depth - 1);
  }
  return deepest;
}
