/**
 * A JSON Schema that recorded values fit, for the `returns` of a manifest: types and names of members, never values. An object
 * that seems to have a member for each thing, such as for each user, is a map without names.
 */
import { isJsonObject } from '../../src/domain/json.ts';
import type { Json, JsonObject } from '../../src/domain/json.ts';

const DEPTH = 6;
/** An object with more members is a map. */
const MOST_MEMBERS = 30;
/** So many records of one form are a map. */
const LEAST_RECORDS = 3;
/** Items of all lists at one place. */
const MOST_ITEMS = 500;
const NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,39}$/;

/** @param values at least one */
export function schemaOfValues(values: readonly Json[]): JsonObject {
  return ofValues(values, DEPTH);
}

function ofValues(values: readonly Json[], depth: number): JsonObject {
  const types = typesOf(values);
  const [type] = types;
  if (type === undefined || depth === 0) return {};
  const written: Json = types.length === 1 ? type : types;
  return {
    type: written,
    ...(types.includes('object') ? ofObjects(values.filter(isJsonObject), depth - 1) : {}),
    ...(types.includes('array') ? ofLists(values.filter(Array.isArray), depth - 1) : {}),
  };
}

/** Whole numbers are numbers beside others. */
function typesOf(values: readonly Json[]): string[] {
  const types = new Set(values.map(typeOf));
  if (types.has('number')) types.delete('integer');
  return [...types].toSorted();
}

function typeOf(value: Json): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value;
}

function ofObjects(objects: readonly JsonObject[], depth: number): JsonObject {
  const names = new Set(objects.flatMap((one) => Object.keys(one)));
  if (names.size > MOST_MEMBERS || [...names].some((name) => !NAME.test(name)) || areRecords(objects, names)) {
    const all = objects.flatMap((one) => Object.values(one)).slice(0, MOST_ITEMS);
    return { additionalProperties: ofValues(all, depth) };
  }
  const properties = [...names].map((name): [string, JsonObject] => [
    name,
    ofValues(
      objects.flatMap((one) => (Object.hasOwn(one, name) ? [one[name] ?? null] : [])),
      depth,
    ),
  ]);
  const required = [...names].filter((name) => objects.every((one) => Object.hasOwn(one, name)));
  // An empty list too: without one, all members would be taken for certain.
  return { properties: Object.fromEntries(properties), required };
}

/** Whether several members are objects with the same members. */
function areRecords(objects: readonly JsonObject[], names: ReadonlySet<string>): boolean {
  if (names.size < LEAST_RECORDS) return false;
  const values = objects.flatMap((one) => Object.values(one));
  const forms = new Set(values.map((value) => (isJsonObject(value) ? Object.keys(value).toSorted().join('\0') : null)));
  return forms.size === 1 && !forms.has(null) && !forms.has('');
}

function ofLists(lists: readonly (readonly Json[])[], depth: number): JsonObject {
  const items = lists.flat().slice(0, MOST_ITEMS);
  return items.length === 0 ? {} : { items: ofValues(items, depth) };
}
