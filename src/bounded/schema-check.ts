/**
 * Checks a value against a JSON Schema (2020-12), with a limit of work. Every schema that is applied to a
 * value is charged, and each keyword whose work depends on sizes is charged before it does it: schemas come
 * from tenants and models, values from models and clients, and `allOf`, `$ref`, `uniqueItems` and `contains`
 * together can ask for any power of their sizes.
 */
import { isJsonObject } from '../domain/json.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { WorkMeter } from '../domain/work.ts';
import { excerptOf } from './json-size.ts';
import { canonicalOf, charactersOf, isMultipleOf, sameJson, typeOfJson } from './json-values.ts';
import { matchesFormat } from './schema-formats.ts';
import { UnusableSchema } from './schema.ts';
import type { PreparedSchema } from './schema.ts';

/** One keyword that a part of the value does not satisfy; places as JSON Pointers in URI form, from `#`. */
export interface SchemaError {
  readonly keyword: string;
  readonly instanceLocation: string;
  /** Through references: `#/properties/a/$ref/minLength`. */
  readonly keywordLocation: string;
  readonly error: string;
}

/**
 * @returns the errors, at most `limits.schemaErrors`; empty if the value matches
 * @throws WorkExceeded, UnusableSchema
 */
export function checkValue(
  schema: PreparedSchema,
  value: Json,
  meter: WorkMeter = new WorkMeter(limits.schemaSteps),
): readonly SchemaError[] {
  schema.assertUsable();
  const check = new Check(schema, meter);
  check.apply(schema.root, value, TOP, schema.tracksEvaluated ? new Evaluated() : null);
  return check.errors;
}

/** Cost of applying a schema to a value, in visits of a node. */
const APPLY_STEPS = 6;

/** Cost of recording an evaluated member. */
const EVALUATED_STEPS = 8;

type Step = string | number;

/** A position in the value and in the schema; formatted only for errors. */
interface Place {
  readonly outer: Place | null;
  /** From the outer place: the member of the value, if it is another one, and the way in the schema. */
  readonly members: readonly Step[];
  readonly keywords: readonly Step[];
}

const TOP: Place = { outer: null, members: [], keywords: [] };

/** Members and items that a schema has evaluated (`unevaluatedProperties`, `unevaluatedItems`). */
class Evaluated {
  readonly names = new Set<string>();
  readonly items = new Set<number>();

  add(other: Evaluated): void {
    for (const name of other.names) this.names.add(name);
    for (const index of other.items) this.items.add(index);
  }
}

/** One schema, applied to one value. */
interface Applied {
  readonly schema: JsonObject;
  readonly value: Json;
  readonly place: Place;
  /** Null if no schema needs it. */
  readonly seen: Evaluated | null;
}

class Check {
  readonly errors: SchemaError[] = [];
  readonly #schema: PreparedSchema;
  readonly #meter: WorkMeter;
  #depth = 0;

  constructor(schema: PreparedSchema, meter: WorkMeter) {
    this.#schema = schema;
    this.#meter = meter;
  }

  /** Whether the value matches; otherwise `errors` has the reasons. */
  apply(schema: Json, value: Json, place: Place, seen: Evaluated | null): boolean {
    this.#meter.charge(APPLY_STEPS);
    if (schema === true) return true;
    if (!isJsonObject(schema)) {
      if (schema !== false) throw new UnusableSchema('a schema is a map, true or false');
      this.#report('false', place, [], 'False boolean schema.');
      return false;
    }
    this.#depth += 1;
    if (this.#depth > limits.schemaDepth) {
      throw new UnusableSchema(`schemas within schemas nest too deeply (allowed: ${limits.schemaDepth})`);
    }
    const applied: Applied = { schema, value, place, seen };
    let valid = this.#reference(applied);
    valid = this.#kind(applied) && valid;
    valid = this.#combinations(applied) && valid;
    if (Array.isArray(value)) valid = this.#array(applied, value) && valid;
    else if (isJsonObject(value)) valid = this.#object(applied, value) && valid;
    else if (typeof value === 'number') valid = this.#number(applied, value) && valid;
    else if (typeof value === 'string') valid = this.#text(applied, value) && valid;
    this.#depth -= 1;
    return valid;
  }

  // --- schemas that are applied to the same value ---

  #reference(applied: Applied): boolean {
    const { $ref, $recursiveRef } = applied.schema;
    let valid = true;
    if ($ref !== undefined) {
      if (typeof $ref !== 'string') throw new UnusableSchema('"$ref" is a text');
      valid = this.#same(applied, this.#schema.target($ref), ['$ref']);
    }
    if ($recursiveRef === '#') valid = this.#same(applied, this.#schema.root, ['$recursiveRef']) && valid;
    return valid;
  }

  #combinations(applied: Applied): boolean {
    const { schema } = applied;
    let valid = true;
    if (schema['not'] !== undefined) {
      const start = this.errors.length;
      const matches = this.apply(schema['not'], applied.value, below(applied.place, ['not']), this.#fresh(applied));
      this.errors.length = start;
      if (matches) valid = this.#fail(applied, 'not', 'Instance matched "not" schema.');
    }
    for (const keyword of ['anyOf', 'allOf', 'oneOf'] as const) {
      const members = listAt(schema, keyword);
      if (members === null) continue;
      const start = this.errors.length;
      const matches = members.filter((member, index) => this.#same(applied, member, [keyword, index])).length;
      if (keyword === 'anyOf' ? matches > 0 : matches === (keyword === 'allOf' ? members.length : 1)) {
        this.errors.length = start;
      } else valid = this.#fail(applied, keyword, COMBINED[keyword](matches), start);
    }
    if (schema['if'] !== undefined) {
      const start = this.errors.length;
      const then = this.#same(applied, schema['if'], ['if']) ? 'then' : 'else';
      this.errors.length = start;
      const next = schema[then];
      if (next !== undefined && !this.#same(applied, next, [then])) {
        valid = this.#fail(applied, 'if', `Instance does not match "${then}" schema.`, start);
      }
    }
    return valid;
  }

  /** Evaluated members count only if the schema matches. */
  #same({ value, place, seen }: Applied, schema: Json, keywords: readonly Step[]): boolean {
    const inner = seen === null ? null : new Evaluated();
    const valid = this.apply(schema, value, below(place, keywords), inner);
    if (valid && seen !== null && inner !== null) {
      this.#meter.charge(EVALUATED_STEPS * (inner.names.size + inner.items.size));
      seen.add(inner);
    }
    return valid;
  }

  // --- keywords for any value ---

  #kind(applied: Applied): boolean {
    const { schema, value } = applied;
    const { type, enum: allowed } = schema;
    let valid = true;
    if (type !== undefined) {
      const types = Array.isArray(type) ? type : [type];
      this.#meter.charge(types.length);
      const found = typeOfJson(value);
      const whole = typeof value === 'number' && value % 1 === 0;
      if (!types.some((name) => name === found || (whole && name === 'integer'))) {
        const expected = excerptOf(type, limits.excerptChars);
        valid = this.#fail(applied, 'type', `Instance type "${found}" is invalid. Expected ${expected}.`);
      }
    }
    const constant = schema['const'];
    if (constant !== undefined && !sameJson(value, constant, this.#meter)) {
      valid = this.#fail(applied, 'const', `Instance does not match ${excerptOf(constant, limits.excerptChars)}.`);
    }
    if (allowed !== undefined) {
      const values = listAt(schema, 'enum') ?? [];
      if (!values.some((item) => sameJson(value, item, this.#meter))) {
        const shown = excerptOf(allowed, limits.excerptChars);
        valid = this.#fail(applied, 'enum', `Instance does not match any of ${shown}.`);
      }
    }
    return valid;
  }

  #number(applied: Applied, value: number): boolean {
    const { multipleOf } = applied.schema;
    let valid = true;
    for (const [keyword, breaks, words] of BOUNDS) {
      const bound = applied.schema[keyword];
      if (typeof bound === 'number' && breaks(value, bound)) {
        valid = this.#fail(applied, keyword, `${value} is ${words} ${bound}.`);
      }
    }
    if (typeof multipleOf === 'number') {
      this.#meter.charge(MULTIPLE_STEPS);
      if (!isMultipleOf(value, multipleOf)) {
        valid = this.#fail(applied, 'multipleOf', `${value} is not a multiple of ${multipleOf}.`);
      }
    }
    return valid;
  }

  #text(applied: Applied, value: string): boolean {
    const { minLength, maxLength, pattern, format } = applied.schema;
    let valid = true;
    if (typeof minLength === 'number' || typeof maxLength === 'number') {
      this.#meter.chargeChars(value.length);
      const length = charactersOf(value);
      if (typeof minLength === 'number' && length < minLength) {
        valid = this.#fail(applied, 'minLength', `String is too short (${length} < ${minLength}).`);
      }
      if (typeof maxLength === 'number' && length > maxLength) {
        valid = this.#fail(applied, 'maxLength', `String is too long (${length} > ${maxLength}).`);
      }
    }
    if (typeof pattern === 'string' && !this.#schema.pattern(pattern).test(value, this.#meter)) {
      valid = this.#fail(applied, 'pattern', 'String does not match pattern.');
    }
    if (typeof format === 'string' && !matchesFormat(format, value, this.#meter)) {
      valid = this.#fail(applied, 'format', `String does not match format "${format}".`);
    }
    return valid;
  }

  // --- objects ---

  #object(applied: Applied, value: JsonObject): boolean {
    const names = Object.keys(value);
    this.#meter.charge(names.length);
    let valid = this.#nameRules(applied, value, names);
    valid = this.#dependencies(applied, value) && valid;
    return this.#members(applied, value, names) && valid;
  }

  #nameRules(applied: Applied, value: JsonObject, names: readonly string[]): boolean {
    const { schema, place } = applied;
    const { minProperties, maxProperties, propertyNames } = schema;
    let valid = true;
    for (const name of this.#list(schema, 'required')) {
      if (typeof name === 'string' && !Object.hasOwn(value, name)) {
        valid = this.#fail(applied, 'required', `Instance does not have required property "${name}".`);
      }
    }
    if (typeof minProperties === 'number' && names.length < minProperties) {
      valid = this.#fail(applied, 'minProperties', `Instance does not have at least ${minProperties} properties.`);
    }
    if (typeof maxProperties === 'number' && names.length > maxProperties) {
      valid = this.#fail(applied, 'maxProperties', `Instance has more than ${maxProperties} properties.`);
    }
    if (propertyNames === undefined) return valid;
    for (const name of names) {
      const start = this.errors.length;
      if (!this.apply(propertyNames, name, below(place, ['propertyNames'], [name]), this.#fresh(applied))) {
        valid = this.#fail(applied, 'propertyNames', `Property name "${name}" does not match schema.`, start);
      }
    }
    return valid;
  }

  #dependencies(applied: Applied, value: JsonObject): boolean {
    let valid = true;
    for (const keyword of ['dependentRequired', 'dependentSchemas', 'dependencies'] as const) {
      const members = mapAt(applied.schema, keyword);
      if (members === null) continue;
      for (const name of this.#names(members)) {
        if (!Object.hasOwn(value, name)) continue;
        const needed = members[name] ?? null;
        if (!Array.isArray(needed)) {
          const start = this.errors.length;
          if (!this.#same(applied, needed, [keyword, name])) {
            valid = this.#fail(applied, keyword, `Instance has "${name}" but does not match dependent schema.`, start);
          }
          continue;
        }
        this.#meter.charge(needed.length);
        for (const other of needed) {
          if (typeof other === 'string' && !Object.hasOwn(value, other)) {
            valid = this.#fail(applied, keyword, `Instance has "${name}" but does not have "${other}".`);
          }
        }
      }
    }
    return valid;
  }

  #members(applied: Applied, value: JsonObject, names: readonly string[]): boolean {
    const { schema, seen } = applied;
    const known = new Set<string>();
    let valid = true;
    const member = (name: string, own: Json, keywords: readonly Step[], error: string): void => {
      known.add(name);
      seen?.names.add(name);
      const start = this.errors.length;
      const place = below(applied.place, keywords, [name]);
      if (this.apply(own, value[name] ?? null, place, this.#fresh(applied))) return;
      valid = this.#fail(applied, String(keywords[0]), error, start);
    };
    const properties = mapAt(schema, 'properties');
    for (const name of this.#names(properties)) {
      if (Object.hasOwn(value, name)) {
        member(name, properties?.[name] ?? null, ['properties', name], `Property "${name}" does not match schema.`);
      }
    }
    const patterns = mapAt(schema, 'patternProperties');
    for (const source of this.#names(patterns)) {
      const own = patterns?.[source] ?? null;
      const pattern = this.#schema.pattern(source);
      for (const name of names) {
        if (!pattern.test(name, this.#meter)) continue;
        const error = `Property "${name}" matches pattern "${source}" but does not match associated schema.`;
        member(name, own, ['patternProperties', source], error);
      }
    }
    const { additionalProperties, unevaluatedProperties } = schema;
    if (additionalProperties !== undefined) {
      for (const name of names) {
        if (known.has(name)) continue;
        const error = `Property "${name}" does not match additional properties schema.`;
        member(name, additionalProperties, ['additionalProperties'], error);
      }
    } else if (unevaluatedProperties !== undefined) {
      for (const name of names) {
        if (seen?.names.has(name) === true) continue;
        const error = `Property "${name}" does not match unevaluated properties schema.`;
        member(name, unevaluatedProperties, ['unevaluatedProperties'], error);
      }
    }
    return valid;
  }

  // --- arrays ---

  #array(applied: Applied, value: readonly Json[]): boolean {
    const { schema, seen } = applied;
    const { minItems, maxItems, uniqueItems, unevaluatedItems } = schema;
    let valid = true;
    if (typeof maxItems === 'number' && value.length > maxItems) {
      valid = this.#fail(applied, 'maxItems', `Array has too many items (${value.length} > ${maxItems}).`);
    }
    if (typeof minItems === 'number' && value.length < minItems) {
      valid = this.#fail(applied, 'minItems', `Array has too few items (${value.length} < ${minItems}).`);
    }
    const item = (index: number, own: Json, keywords: readonly Step[], error: string): void => {
      seen?.items.add(index);
      const start = this.errors.length;
      const place = below(applied.place, keywords, [index]);
      if (this.apply(own, value[index] ?? null, place, this.#fresh(applied))) return;
      valid = this.#fail(applied, String(keywords[0]), error, start);
    };
    let next = 0;
    for (const keyword of ['prefixItems', 'items'] as const) {
      const own = schema[keyword];
      if (!Array.isArray(own)) continue;
      for (; next < Math.min(own.length, value.length); next += 1) {
        item(next, own[next] ?? true, [keyword, next], 'Items did not match schema.');
      }
    }
    const rest = Array.isArray(schema['items']) ? 'additionalItems' : 'items';
    const others = schema[rest];
    if (others !== undefined) {
      for (; next < value.length; next += 1) item(next, others, [rest], 'Items did not match schema.');
    }
    valid = this.#contains(applied, value) && valid;
    if (unevaluatedItems !== undefined) {
      for (; next < value.length; next += 1) {
        if (seen?.items.has(next) === true) continue;
        item(next, unevaluatedItems, ['unevaluatedItems'], 'Items did not match unevaluated items schema.');
      }
    }
    return (uniqueItems !== true || this.#unique(applied, value)) && valid;
  }

  #contains(applied: Applied, value: readonly Json[]): boolean {
    const { contains, minContains, maxContains } = applied.schema;
    if (contains === undefined) return true;
    const start = this.errors.length;
    let found = 0;
    for (const [index, item] of value.entries()) {
      if (!this.apply(contains, item, below(applied.place, ['contains'], [index]), this.#fresh(applied))) continue;
      found += 1;
      applied.seen?.items.add(index);
    }
    this.errors.length = start;
    const least = typeof minContains === 'number' ? minContains : 1;
    if (found < least) {
      const keyword = minContains === undefined ? 'contains' : 'minContains';
      return this.#fail(
        applied,
        keyword,
        `Array must contain at least ${least} items matching schema, found ${found}.`,
      );
    }
    if (typeof maxContains !== 'number' || found <= maxContains) return true;
    return this.#fail(
      applied,
      'maxContains',
      `Array may contain at most ${maxContains} items matching schema, found ${found}.`,
    );
  }

  #unique(applied: Applied, value: readonly Json[]): boolean {
    const places = new Map<string, number>();
    for (const [index, item] of value.entries()) {
      const canonical = canonicalOf(item, this.#meter);
      const earlier = places.get(canonical);
      if (earlier !== undefined) {
        return this.#fail(applied, 'uniqueItems', `Duplicate items at indexes ${earlier} and ${index}.`);
      }
      places.set(canonical, index);
    }
    return true;
  }

  // --- helpers ---

  #fresh({ seen }: Applied): Evaluated | null {
    return seen === null ? null : new Evaluated();
  }

  #list(schema: JsonObject, keyword: string): readonly Json[] {
    const list = listAt(schema, keyword) ?? [];
    this.#meter.charge(list.length);
    return list;
  }

  /** The names of a map in the schema; computed once for all values. */
  #names(members: JsonObject | null): readonly string[] {
    if (members === null) return [];
    const names = this.#schema.namesOf(members);
    this.#meter.charge(names.length);
    return names;
  }

  /** @param before the error goes before those that it is the sum of; @returns false */
  #fail({ place }: Applied, keyword: string, error: string, before = this.errors.length): false {
    return this.#report(keyword, place, [keyword], error, before);
  }

  #report(keyword: string, place: Place, keywords: readonly Step[], error: string, before = this.errors.length): false {
    if (before >= limits.schemaErrors) return false;
    const schemaPlace = below(place, keywords);
    this.errors.splice(before, 0, {
      keyword,
      instanceLocation: pointer(schemaPlace, 'members'),
      keywordLocation: pointer(schemaPlace, 'keywords'),
      error: error.length > MESSAGE_CHARS ? `${error.slice(0, MESSAGE_CHARS)}…` : error,
    });
    if (this.errors.length > limits.schemaErrors) this.errors.length = limits.schemaErrors;
    return false;
  }
}

/** Cost of the arithmetic with big integers. */
const MULTIPLE_STEPS = 80;
/** Names of members may be long. */
const MESSAGE_CHARS = 1_000;

const COMBINED = {
  anyOf: () => 'Instance does not match any subschemas.',
  allOf: () => 'Instance does not match every subschema.',
  oneOf: (matches: number) =>
    matches === 0 ? 'Instance does not match any subschema.' : `Instance matches more than one subschema (${matches}).`,
} as const;

const BOUNDS: readonly (readonly [
  keyword: string,
  breaks: (value: number, bound: number) => boolean,
  words: string,
])[] = [
  ['minimum', (value, bound) => value < bound, 'less than'],
  ['maximum', (value, bound) => value > bound, 'greater than'],
  ['exclusiveMinimum', (value, bound) => value <= bound, 'less than or equal to'],
  ['exclusiveMaximum', (value, bound) => value >= bound, 'greater than or equal to'],
];

function listAt(schema: JsonObject, keyword: string): readonly Json[] | null {
  const list = schema[keyword];
  if (list === undefined) return null;
  if (!Array.isArray(list)) throw new UnusableSchema(`"${keyword}" is a list`);
  return list;
}

function mapAt(schema: JsonObject, keyword: string): JsonObject | null {
  const map = schema[keyword];
  if (map === undefined) return null;
  if (!isJsonObject(map)) throw new UnusableSchema(`"${keyword}" is a map`);
  return map;
}

function below(outer: Place, keywords: readonly Step[], members: readonly Step[] = []): Place {
  return { outer, keywords, members };
}

function pointer(place: Place, part: 'keywords' | 'members'): string {
  const steps: Step[][] = [];
  for (let current: Place | null = place; current !== null; current = current.outer) steps.push([...current[part]]);
  return ['#', ...steps.toReversed().flat().map(encoded)].join('/');
}

function encoded(step: Step): string {
  return encodeURI(String(step).toWellFormed().replaceAll('~', '~0').replaceAll('/', '~1'));
}
