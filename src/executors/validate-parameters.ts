/** Validates a tool's parameters against its JSON Schema, with messages that help a model to correct its call (M3). */
import { TooDeep } from '../bounded/json-size.ts';
import { checkValue } from '../bounded/schema-check.ts';
import { SchemaDefaults } from '../bounded/schema-defaults.ts';
import type { SchemaError } from '../bounded/schema-run.ts';
import { PreparedSchema, UnusableSchema } from '../bounded/schema.ts';
import { messageOf } from '../domain/errors.ts';
import { isJsonObject } from '../domain/json.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { WorkExceeded, WorkMeter } from '../domain/work.ts';
import { quote } from './failure.ts';

const ISSUES_SHOWN = 5;
const prepared = new WeakMap<JsonObject, PreparedSchema>();
const defaults = new WeakMap<JsonObject, SchemaDefaults | null>();

/**
 * The issues of `parameters`, as one line for the model (`parameters.url: expected string, got number 5; …`, at most
 * five), or null if they are valid.
 */
export function validateParameters(schema: JsonObject, parameters: JsonObject, meter?: WorkMeter): string | null {
  return validateJson(schema, parameters, 'parameters', meter);
}

/**
 * The parameters as they are judged, checked and executed (D3): with the defaults of the schema, and without null where it
 * means absent. What cannot be completed stays as it is: the check says why.
 *
 * @param withDefaults false: the target has defaults of its own, and only null is made absent
 */
export function completeParameters(schema: JsonObject, parameters: JsonObject, withDefaults = true): JsonObject {
  try {
    const completed = defaultsOf(schema)?.complete(parameters, withDefaults);
    return isJsonObject(completed) ? completed : parameters;
  } catch (fault) {
    if (isLimit(fault)) return parameters;
    throw fault;
  }
}

/** Null: the schema cannot be used. */
function defaultsOf(schema: JsonObject): SchemaDefaults | null {
  let known = defaults.get(schema);
  if (known === undefined) {
    try {
      known = new SchemaDefaults(read(schema));
    } catch (fault) {
      if (!isLimit(fault)) throw fault;
      known = null;
    }
    defaults.set(schema, known);
  }
  return known;
}

function isLimit(fault: unknown): boolean {
  return fault instanceof WorkExceeded || fault instanceof UnusableSchema;
}

/** Why a schema cannot be used, or null if it can. */
export function schemaIssue(schema: JsonObject, meter: WorkMeter): string | null {
  try {
    read(schema, meter).assertUsable();
    return null;
  } catch (fault) {
    return reasonOf(fault);
  }
}

/** Begins an issue that is caused by the schema rather than by the value alone. */
export const UNCHECKED = 'could not be checked';

/** Like `validateParameters`, for any value; `name` is its name in the issues. */
export function validateJson(
  schema: JsonObject,
  value: Json,
  name: string,
  meter: WorkMeter = new WorkMeter(limits.schemaSteps),
): string | null {
  let errors: readonly SchemaError[];
  try {
    errors = checkValue(read(schema), value, meter);
  } catch (fault) {
    return `${name} ${UNCHECKED}: ${reasonOf(fault)}`;
  }
  if (errors.length === 0) return null;
  const issues = new Set<string>();
  for (const error of errors) {
    const issue = issueOf(error, { schema, value, name });
    if (issue !== null) issues.add(issue);
  }
  if (issues.size === 0) return `${name} does not match the schema: ${errors[0]?.error ?? 'no reason given'}`;
  const shown = [...issues].slice(0, ISSUES_SHOWN);
  const more = issues.size - shown.length;
  return shown.join('; ') + (more > 0 ? `; and ${more} more` : '');
}

function read(schema: JsonObject, meter = new WorkMeter(limits.schemaSteps)): PreparedSchema {
  let known = prepared.get(schema);
  if (known === undefined) {
    known = new PreparedSchema(schema, meter);
    prepared.set(schema, known);
  }
  return known;
}

function reasonOf(fault: unknown): string {
  if (fault instanceof WorkExceeded) return `schema and value together take too much work (${fault.message})`;
  return fault instanceof TooDeep ? fault.message : `the schema cannot be used (${messageOf(fault)})`;
}

/** Keywords whose errors only report that a nested keyword failed; that failure is listed as well. */
const AGGREGATES = new Set(
  `properties patternProperties items prefixItems additionalItems unevaluatedItems allOf $ref $dynamicRef $recursiveRef
  if then else dependentSchemas false`.split(/\s+/),
);

interface Validated {
  readonly schema: JsonObject;
  readonly value: Json;
  readonly name: string;
}

function issueOf(error: SchemaError, { schema, value, name: root }: Validated): string | null {
  const { keyword } = error;
  if (AGGREGATES.has(keyword)) return null;
  const where = nameOf(error.instanceLocation, root);
  const found = at(value, error.instanceLocation);
  const rule = ruleAt(schema, error.keywordLocation);
  const got = found === undefined ? 'nothing' : found === null ? 'null' : `${typeOf(found)} ${quote(found)}`;
  switch (keyword) {
    case 'type':
      return `${where}: expected ${listed(rule)}, got ${got}${allowedOf(schema, error.keywordLocation)}`;
    case 'enum':
      return `${where}: ${quote(found)} is not allowed (allowed: ${listed(rule)})`;
    case 'const':
      return `${where}: ${quote(found)} is not allowed (allowed: ${quote(rule)})`;
    case 'required': {
      const name = /"(.*)"/s.exec(error.error)?.[1] ?? '';
      return `${where}.${name}: is missing${typeOfProperty(schema, error.keywordLocation, name)}`;
    }
    case 'additionalProperties':
    case 'unevaluatedProperties': {
      const name = /"(.*)"/s.exec(error.error)?.[1] ?? '';
      const known = knownNames(schema, error.keywordLocation);
      return rule === false || known !== '' ? `${where}.${name}: unknown parameter${known}` : null;
    }
    case 'minimum':
    case 'exclusiveMinimum':
    case 'maximum':
    case 'exclusiveMaximum':
      return `${where}: ${quote(found)} is out of range (allowed: ${BOUNDS[keyword] ?? ''} ${quote(rule)})`;
    case 'minLength':
    case 'maxLength': {
      const length = typeof found === 'string' ? found.length : 0;
      return `${where}: has ${length} characters (allowed: ${keyword === 'minLength' ? 'at least' : 'at most'} ${quote(rule)})`;
    }
    case 'pattern':
      return `${where}: ${quote(found)} does not match the pattern ${quote(rule)}`;
    case 'anyOf':
    case 'oneOf':
      return `${where}: matches ${error.error.includes('more than one') ? 'more than one' : 'none'} of the allowed forms`;
    default:
      return `${where}: ${error.error}`;
  }
}

const BOUNDS: Readonly<Record<string, string>> = {
  minimum: 'at least',
  exclusiveMinimum: 'more than',
  maximum: 'at most',
  exclusiveMaximum: 'less than',
};

/** `#/items/0/url` -> `parameters.items[0].url`. */
function nameOf(location: string, root: string): string {
  return stepsOf(location).reduce((name, step) => (/^\d+$/.test(step) ? `${name}[${step}]` : `${name}.${step}`), root);
}

function stepsOf(location: string): string[] {
  const [, ...steps] = location.split('/');
  return steps.map((step) => decodeStep(step).replaceAll('~1', '/').replaceAll('~0', '~'));
}

function decodeStep(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}

function at(root: Json, location: string): Json | undefined {
  let current: Json | undefined = root;
  for (const step of stepsOf(location)) current = into(current, step);
  return current;
}

function into(value: Json | undefined, step: string): Json | undefined {
  if (Array.isArray(value)) return value[Number(step)];
  return isJsonObject(value) && Object.hasOwn(value, step) ? value[step] : undefined;
}

/** The schema's value at a location that was reached through references: `#/properties/a/$ref/minLength`. */
function ruleAt(schema: JsonObject, location: string): Json | undefined {
  let current: Json | undefined = schema;
  for (const step of stepsOf(location)) {
    current = into(current, step);
    if (step === '$ref' && typeof current === 'string') current = at(schema, current);
  }
  return current;
}

/** The schema that contains a keyword. */
function ownerOf(schema: JsonObject, keywordLocation: string): JsonObject | null {
  const owner = ruleAt(schema, keywordLocation.slice(0, keywordLocation.lastIndexOf('/')));
  return isJsonObject(owner) ? owner : null;
}

function allowedOf(schema: JsonObject, keywordLocation: string): string {
  const allowed = ownerOf(schema, keywordLocation)?.['enum'];
  return Array.isArray(allowed) ? ` (allowed: ${listed(allowed)})` : '';
}

function typeOfProperty(schema: JsonObject, keywordLocation: string, name: string): string {
  const properties = ownerOf(schema, keywordLocation)?.['properties'];
  const property = isJsonObject(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined;
  if (!isJsonObject(property) || property['type'] === undefined) return '';
  return ` (expected: ${listed(property['type'])})`;
}

function knownNames(schema: JsonObject, keywordLocation: string): string {
  const properties = ownerOf(schema, keywordLocation)?.['properties'];
  if (!isJsonObject(properties)) return '';
  const names = Object.keys(properties);
  return names.length === 0 ? ' (allowed: none)' : ` (allowed: ${names.slice(0, 20).join(', ')})`;
}

function listed(value: Json | undefined): string {
  const items = Array.isArray(value) ? value : [value ?? null];
  const shown = items
    .slice(0, 20)
    .map((item) => (typeof item === 'string' ? item : quote(item)))
    .join(', ');
  return shown.length > 4 * limits.excerptChars ? `${shown.slice(0, 4 * limits.excerptChars)}…` : shown;
}

function typeOf(value: Json): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value;
}
