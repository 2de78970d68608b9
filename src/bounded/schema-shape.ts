/** The shape of a JSON Schema: errors that a validator would report only when a value is checked, or not at all. */
import { isJsonObject } from '../domain/json.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { excerptOf } from './json-size.ts';

export const SCHEMA_TYPES: readonly string[] = ['string', 'integer', 'number', 'boolean', 'array', 'object', 'null'];

type SchemaPath = readonly (string | number)[];

/** Reports wrong types of keywords and references without a target, with their positions. */
export function checkShape(schema: JsonObject, report: (path: SchemaPath, message: string) => void): void {
  eachSchema(schema, (part, path) => {
    if (typeof part === 'boolean') return;
    if (isJsonObject(part)) check(part, schema, report, path);
    else report(path, `expected a JSON Schema, found ${quoted(part)}`);
  });
}

/** Calls `visit` with a schema, and then with each schema in it; each may be any value, because the author wrote it. */
export function eachSchema(schema: Json, visit: (part: Json, path: SchemaPath) => void, path: SchemaPath = []): void {
  visit(schema, path);
  if (!isJsonObject(schema)) return;
  for (const key of ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']) {
    const members = schema[key];
    if (!isJsonObject(members)) continue;
    for (const [name, member] of Object.entries(members)) eachSchema(member, visit, [...path, key, name]);
  }
  for (const key of ['items', 'additionalProperties', 'not', 'contains', 'propertyNames', 'if', 'then', 'else']) {
    const member = schema[key];
    if (member !== undefined && !Array.isArray(member)) eachSchema(member, visit, [...path, key]);
  }
  for (const key of ['oneOf', 'anyOf', 'allOf', 'prefixItems']) {
    const members = schema[key];
    if (!Array.isArray(members)) continue;
    for (const [index, member] of members.entries()) eachSchema(member, visit, [...path, key, index]);
  }
}

function check(
  schema: JsonObject,
  root: JsonObject,
  report: (path: SchemaPath, message: string) => void,
  path: SchemaPath,
): void {
  const types = Array.isArray(schema['type']) ? schema['type'] : [schema['type']];
  for (const type of types) {
    if (type !== undefined && !(typeof type === 'string' && SCHEMA_TYPES.includes(type))) {
      report([...path, 'type'], `unknown type ${quoted(type)} (allowed: ${SCHEMA_TYPES.join(', ')})`);
    }
  }
  if (schema['enum'] !== undefined && !Array.isArray(schema['enum'])) {
    report([...path, 'enum'], `expected a list of allowed values, found ${typeName(schema['enum'])}`);
  }
  if (schema['required'] !== undefined && !isNameList(schema['required'])) {
    report([...path, 'required'], `expected a list of property names, found ${typeName(schema['required'])}`);
  }
  const target = schema['$ref'];
  if (typeof target === 'string' && !hasTarget(target, root)) {
    report([...path, '$ref'], `${quoted(target)} does not exist (allowed: "#/…" in this schema)`);
  }
}

/** Whether a `$ref` has a target in the same schema. Other documents are never loaded. */
function hasTarget(target: string, root: JsonObject): boolean {
  if (target === '#') return true;
  if (!target.startsWith('#/')) return false;
  let current: Json | undefined = root;
  for (const step of target.slice(2).split('/')) {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(current)) current = current[Number(key)];
    else current = isJsonObject(current) && Object.hasOwn(current, key) ? current[key] : undefined;
  }
  return current !== undefined;
}

function isNameList(value: Json): boolean {
  return Array.isArray(value) && value.every((name) => typeof name === 'string');
}

function quoted(value: unknown): string {
  return excerptOf(value, limits.excerptChars);
}

/** The names that authors of YAML use. */
function typeName(value: Json): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'list';
  return typeof value === 'object' ? 'map' : typeof value;
}
