/** Inputs of a workflow, to begin with. */
import type { Json, JsonObject } from '../../src/client/index.ts';
import * as limits from '../parts/limits.ts';

const EMPTY: Readonly<Record<string, Json>> = { string: '', integer: 0, number: 0, boolean: false, array: [] };

/**
 * A value for a JSON Schema: its default, its first allowed value, or one that is as small as its type allows. Keywords that
 * are not understood are ignored, so that the server has the last word.
 */
export function exampleOf(schema: Json | undefined, depth = 0): Json {
  if (!isObject(schema) || depth >= limits.exampleDepth) return null;
  const { default: given, enum: allowed, type, items, properties } = schema;
  if (given !== undefined) return given;
  if (Array.isArray(allowed)) return allowed[0] ?? null;
  if (isObject(properties)) {
    const members = Object.entries(properties).slice(0, limits.exampleMembers);
    return Object.fromEntries(members.map(([name, member]) => [name, exampleOf(member, depth + 1)]));
  }
  if (isObject(items)) return [exampleOf(items, depth + 1)];
  return typeof type === 'string' && Object.hasOwn(EMPTY, type) ? (EMPTY[type] ?? null) : null;
}

/** What an `Inputs` box contains: an object, or why not. */
export function inputsIn(text: string): { readonly inputs: JsonObject } | { readonly issue: string } {
  if (text.trim() === '') return { inputs: {} };
  try {
    const value = JSON.parse(text) as Json;
    return isObject(value) ? { inputs: value } : { issue: 'Inputs must be a JSON object, such as {"n": 1}' };
  } catch (fault) {
    return { issue: `Not JSON: ${(fault as SyntaxError).message}` };
  }
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
