/** Judges a model's answer by the JSON Schema that another model wrote for it: `output_schema` (P6). */
import { isJsonObject } from '../domain/json.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { validateParameters } from './validate-parameters.ts';

/** Where the schema stands in the one that is checked: the checker speaks of objects only. */
const PLACE = '#/properties/output';

/** Keywords by what stands under them. */
const SCHEMAS = new Set(
  'additionalProperties contains else if items not propertyNames then unevaluatedItems unevaluatedProperties'.split(
    ' ',
  ),
);
const LISTS = new Set(['allOf', 'anyOf', 'items', 'oneOf', 'prefixItems']);
const NAMED = new Set(['$defs', 'definitions', 'dependentSchemas', 'properties']);

/**
 * `schema`, ready to be checked: its references lead to where it stands now, and its patterns are left
 * out. A regular expression that a model wrote may take longer than the session lives.
 */
export function checkable(schema: JsonObject): JsonObject {
  return { type: 'object', properties: { output: moved(schema) } };
}

/** @param check what `checkable` made; @returns what is wrong with `value` in one line, or null */
export function outputComplaint(check: JsonObject, value: Json): string | null {
  const complaint = validateParameters(check, { output: value });
  return complaint === null ? null : complaint.replaceAll('parameters.output', 'output');
}

/** Says of a complaint that not the value but the schema is at fault. */
export const UNUSABLE = 'could not be checked';

function moved(schema: JsonObject): JsonObject {
  const patterns = Object.hasOwn(schema, 'patternProperties');
  const entries = Object.entries(schema).flatMap(([keyword, value]): [string, Json][] => {
    if (keyword === 'pattern' || keyword === 'patternProperties' || keyword === '$id' || keyword === '$schema')
      return [];
    // What the patterns would have let through is not to be refused for want of them.
    if (patterns && (keyword === 'additionalProperties' || keyword === 'unevaluatedProperties')) return [];
    if (keyword === '$ref' && typeof value === 'string' && value.startsWith('#'))
      return [[keyword, PLACE + value.slice(1)]];
    return [[keyword, movedBelow(keyword, value)]];
  });
  return Object.fromEntries(entries);
}

function movedBelow(keyword: string, value: Json): Json {
  if (Array.isArray(value)) {
    return LISTS.has(keyword) ? value.map((item) => (isJsonObject(item) ? moved(item) : item)) : value;
  }
  if (!isJsonObject(value)) return value;
  if (SCHEMAS.has(keyword)) return moved(value);
  if (!NAMED.has(keyword)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [name, isJsonObject(item) ? moved(item) : item]),
  );
}
