/**
 * Converts the three forms of a tool's parameters (a list, a map, a JSON Schema) to one JSON Schema (M3).
 */
import { checkValue } from '../../bounded/schema-check.ts';
import { SchemaDefaults } from '../../bounded/schema-defaults.ts';
import { PreparedSchema, UnusableSchema } from '../../bounded/schema.ts';
import type { SchemaIssue } from '../../bounded/schema.ts';
import { messageOf } from '../../domain/errors.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { WorkExceeded, WorkMeter } from '../../domain/work.ts';
import { checkShape, eachSchema, SCHEMA_TYPES } from '../../bounded/schema-shape.ts';
import { isFreeField, unknownField } from '../check/issues.ts';
import { quoted, typeName } from '../check/problem.ts';
import type { FieldPath } from '../check/problem.ts';

export interface ParameterIssue {
  readonly path: FieldPath;
  readonly message: string;
}

/** Aliases of type names, and their JSON Schema names; null = any value. */
const TYPES: Readonly<Record<string, string | null>> = {
  string: 'string',
  str: 'string',
  text: 'string',
  integer: 'integer',
  int: 'integer',
  number: 'number',
  float: 'number',
  double: 'number',
  boolean: 'boolean',
  bool: 'boolean',
  array: 'array',
  list: 'array',
  object: 'object',
  map: 'object',
  dict: 'object',
  null: 'null',
  any: null,
};
const PARAMETER_NAME = /^[A-Za-z_$][A-Za-z0-9_.$-]{0,63}$/;
const SCHEMA_KEYWORDS = new Set(
  `$schema $id $defs $comment type properties required additionalProperties description title oneOf anyOf allOf not if
  then else minProperties maxProperties patternProperties propertyNames dependentRequired dependentSchemas
  unevaluatedProperties definitions examples`.split(/\s+/),
);

/** Keywords of JSON Schema and of OpenAPI's schemas; unknown ones would be ignored, and with them what they allow (K10). */
const ALL_KEYWORDS: ReadonlySet<string> = new Set([
  ...SCHEMA_KEYWORDS,
  ...`$ref $anchor $dynamicRef $dynamicAnchor $recursiveRef $recursiveAnchor $vocabulary id const enum default format pattern
  minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum multipleOf items prefixItems additionalItems contains
  minContains maxContains minItems maxItems uniqueItems unevaluatedItems dependencies contentEncoding contentMediaType
  contentSchema readOnly writeOnly deprecated nullable example discriminator xml externalDocs`.split(/\s+/),
]);

/** The schema of a tool without parameters. */
export const NO_PARAMETERS: JsonObject = { type: 'object', properties: {}, additionalProperties: false };

/**
 * Converts any of the three forms to a JSON Schema of the parameters object.
 *
 * In a list or a map, a spec is optional unless it has `required: true`; a bare type is required unless it ends in `?`;
 * unknown parameters are rejected. A JSON Schema is used unchanged.
 *
 * @param addIssue receives each issue, with its path relative to `written`
 * @param work charged for parsing schemas and patterns; one meter for a whole manifest
 * @param isForeign whether another program wrote the schema: unknown keywords are then annotations
 */
export function toParameterSchema(
  written: Json,
  addIssue: (issue: ParameterIssue) => void,
  work: WorkMeter = new WorkMeter(limits.manifestSchemaSteps),
  isForeign = false,
): JsonObject {
  if (written === null) return NO_PARAMETERS;
  if (Array.isArray(written)) return fromList(written, addIssue, work);
  if (!isJsonObject(written)) {
    addIssue({
      path: [],
      message: `expected a list, a map of name to type, or a JSON Schema, found ${typeName(written)} ${quoted(written)}`,
    });
    return NO_PARAMETERS;
  }
  if (isSchema(written) && !isForeign) checkKeywords(written, (path, message) => addIssue({ path, message }));
  return isSchema(written) ? checkedSchema(written, addIssue, work) : fromMap(written, addIssue, work);
}

interface Parameter {
  readonly name: string;
  readonly schema: JsonObject;
  readonly required: boolean;
  readonly path: FieldPath;
}

/** A map is a JSON Schema if it has `type: object` or `$schema`, or only schema keywords. */
function isSchema(map: JsonObject): boolean {
  if (map['type'] === 'object' || Object.hasOwn(map, '$schema')) return true;
  const keys = Object.keys(map);
  const { properties } = map;
  const holdsSchemas =
    isJsonObject(properties) && Object.values(properties).every((member) => isJsonObject(member) || member === true);
  return holdsSchemas && keys.every((key) => SCHEMA_KEYWORDS.has(key));
}

function fromList(list: readonly Json[], addIssue: (issue: ParameterIssue) => void, work: WorkMeter): JsonObject {
  const entries: Parameter[] = [];
  const seen = new Set<string>();
  for (const [index, item] of list.entries()) {
    if (!isJsonObject(item) || typeof item['name'] !== 'string') {
      addIssue({
        path: [index],
        message: `expected a map with "name" and "type", found ${quoted(item)}`,
      });
      continue;
    }
    const { name, ...spec } = item;
    if (!checkName(name, [index, 'name'], addIssue)) continue;
    if (seen.has(name)) addIssue({ path: [index, 'name'], message: `parameter "${name}" is given twice` });
    seen.add(name);
    entries.push({ name, ...fromSpec(spec, [index], addIssue), path: [index] });
  }
  return schemaOf(entries, addIssue, work);
}

function fromMap(map: JsonObject, addIssue: (issue: ParameterIssue) => void, work: WorkMeter): JsonObject {
  const entries: Parameter[] = [];
  for (const [name, spec] of Object.entries(map)) {
    if (!checkName(name, [name], addIssue)) continue;
    if (typeof spec === 'string') {
      const optional = spec.endsWith('?');
      const schema = typeSchema(optional ? spec.slice(0, -1) : spec, [name], addIssue);
      entries.push({ name, schema, required: !optional, path: [name] });
    } else if (isJsonObject(spec)) {
      entries.push({ name, ...fromSpec(spec, [name], addIssue), path: [name] });
    } else {
      addIssue({
        path: [name],
        message: `expected a type such as string, or a map with "type", found ${quoted(spec)}`,
      });
    }
  }
  return schemaOf(entries, addIssue, work);
}

function checkName(name: Json | undefined, path: FieldPath, addIssue: (issue: ParameterIssue) => void): name is string {
  if (typeof name === 'string' && PARAMETER_NAME.test(name) && name !== '__proto__') return true;
  addIssue({
    path,
    message: `${quoted(name)} is not a parameter name (allowed: a letter or _, then up to 63 letters, digits, _ - . $)`,
  });
  return false;
}

/** One spec of a list or map: `required` and the abbreviated types are extensions, other fields are JSON Schema. */
function fromSpec(
  spec: JsonObject,
  path: FieldPath,
  addIssue: (issue: ParameterIssue) => void,
): { readonly schema: JsonObject; readonly required: boolean } {
  const { type, required, ...rest } = spec;
  // a nested schema may have its own list of required properties, which is kept
  if (Array.isArray(required)) rest['required'] = required;
  else if (required !== undefined && typeof required !== 'boolean') {
    addIssue({
      path: [...path, 'required'],
      message: `expected true or false, found ${quoted(required)}`,
    });
  }
  if (type === undefined) return { schema: rest, required: required === true };
  const typed = typeof type === 'string' ? typeSchema(type, [...path, 'type'], addIssue) : { type };
  return { schema: { ...typed, ...rest }, required: required === true };
}

/** `string`, `int`, `string[]`, `array<string>`, `any` as a schema. */
function typeSchema(written: string, path: FieldPath, addIssue: (issue: ParameterIssue) => void): JsonObject {
  // type names have at most 8 letters; a nested form is scanned at each level, so its length is limited
  const name = written.length > limits.excerptChars ? '' : written.trim().toLowerCase();
  const items = /^(?:array|list)<(.+)>$/.exec(name)?.[1] ?? /^(.+)\[\]$/.exec(name)?.[1];
  if (items !== undefined) return { type: 'array', items: typeSchema(items, path, addIssue) };
  const type = Object.hasOwn(TYPES, name) ? TYPES[name] : undefined;
  if (type === null) return {};
  if (type !== undefined) return { type };
  addIssue({
    path,
    message: `unknown type ${quoted(written)} (allowed: ${SCHEMA_TYPES.join(', ')}, any, string[])`,
  });
  return {};
}

function schemaOf(
  entries: readonly Parameter[],
  addIssue: (issue: ParameterIssue) => void,
  work: WorkMeter,
): JsonObject {
  for (const entry of entries) {
    const report = (path: FieldPath, message: string): void => addIssue({ path: [...entry.path, ...path], message });
    checkShape(entry.schema, report);
    checkKeywords(entry.schema, report);
    prepare(entry.schema, report, work);
  }
  const required = entries.filter((entry) => entry.required).map((entry) => entry.name);
  return {
    type: 'object',
    properties: Object.fromEntries(entries.map((entry) => [entry.name, entry.schema])),
    ...(required.length > 0 ? { required } : {}),
    additionalProperties: false,
  };
}

function checkedSchema(schema: JsonObject, addIssue: (issue: ParameterIssue) => void, work: WorkMeter): JsonObject {
  let errors = 0;
  const report = (path: FieldPath, message: string): void => {
    errors += 1;
    addIssue({ path, message });
  };
  checkShape(schema, report);
  const prepared = prepare(schema, report, work);
  if (errors > 0 || prepared === null) return NO_PARAMETERS;
  if (schema['type'] !== undefined && schema['type'] !== 'object') {
    addIssue({
      path: ['type'],
      message: `parameters are an object, so "type" must be object, found ${quoted(schema['type'])}`,
    });
  }
  try {
    // a full walk also finds errors such as a $ref to itself
    checkValue(prepared, {}, new WorkMeter(limits.manifestSchemaSteps));
  } catch (fault) {
    addIssue({ path: [], message: `not a valid JSON Schema: ${messageOf(fault)}` });
  }
  return { type: 'object', ...schema };
}

/** Defaults that their own schemas refuse (D3). Other issues with the schema are reported by other checks. */
function defaultIssues(prepared: PreparedSchema, work: WorkMeter): readonly SchemaIssue[] {
  try {
    return new SchemaDefaults(prepared, work).issues;
  } catch (fault) {
    if (fault instanceof UnusableSchema || fault instanceof WorkExceeded) return [];
    throw fault;
  }
}

function checkKeywords(schema: JsonObject, report: (path: FieldPath, message: string) => void): void {
  eachSchema(schema, (part, path) => {
    for (const keyword of Object.keys(isJsonObject(part) ? part : {})) {
      if (ALL_KEYWORDS.has(keyword) || isFreeField(keyword)) continue;
      report([...path, keyword], unknownField(keyword, [...ALL_KEYWORDS]));
    }
  });
}

/** Compiles a schema and its patterns; null if all schemas together exceed the work limit. */
function prepare(
  schema: JsonObject,
  report: (path: FieldPath, message: string) => void,
  work: WorkMeter,
): PreparedSchema | null {
  try {
    const prepared = new PreparedSchema(schema, work);
    for (const { path, message } of [...prepared.issues, ...defaultIssues(prepared, work)]) report(path, message);
    return prepared;
  } catch (fault) {
    if (!(fault instanceof WorkExceeded)) throw fault;
    report([], `the schemas and patterns of the manifest are too large in total (allowed: ${work.allowed} steps)`);
    return null;
  }
}
