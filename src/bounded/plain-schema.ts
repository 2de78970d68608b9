/**
 * A shortcut for the most frequent schema of parameters: an object whose members have at most one basic type each. A value
 * that matches needs no other check. A value that does not match is checked in full, which finds the reasons.
 */
import { isJsonObject } from '../domain/json.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { typeOfJson } from './json-values.ts';

export interface PlainSchema {
  /** Null for a member of any type. */
  readonly types: ReadonlyMap<string, string | null>;
  readonly required: readonly string[];
  /** Whether other members are allowed. */
  readonly isOpen: boolean;
}

const NOTES = ['title', 'description', 'default', 'examples'];
const OF_MEMBERS: ReadonlySet<string> = new Set(['type', ...NOTES]);
const OF_OBJECTS: ReadonlySet<string> = new Set([...OF_MEMBERS, 'properties', 'required', 'additionalProperties']);

/** @returns null if the schema has any other keyword, or a keyword in another form: such a schema needs the full check */
export function plainSchema(schema: JsonObject): PlainSchema | null {
  const { type, properties = {}, required = [], additionalProperties = true } = schema;
  if (!Object.keys(schema).every((keyword) => OF_OBJECTS.has(keyword))) return null;
  if (type !== 'object' || !isJsonObject(properties) || typeof additionalProperties !== 'boolean') return null;
  if (!Array.isArray(required) || !required.every((name) => typeof name === 'string')) return null;
  const types = new Map<string, string | null>();
  for (const [name, member] of Object.entries(properties)) {
    if (!isJsonObject(member) || !Object.keys(member).every((keyword) => OF_MEMBERS.has(keyword))) return null;
    const own = member['type'] ?? null;
    if (own !== null && typeof own !== 'string') return null;
    types.set(name, own);
  }
  return { types, required, isOpen: additionalProperties };
}

/** Whether the value matches for certain. */
export function matchesPlainly({ types, required, isOpen }: PlainSchema, value: Json): boolean {
  if (!isJsonObject(value)) return false;
  for (const name of required) if (!Object.hasOwn(value, name)) return false;
  for (const name of Object.keys(value)) {
    const type = types.get(name);
    if (type === undefined ? !isOpen : type !== null && !hasType(value[name] ?? null, type)) return false;
  }
  return true;
}

function hasType(value: Json, type: string): boolean {
  return typeOfJson(value) === type || (type === 'integer' && typeof value === 'number' && value % 1 === 0);
}
