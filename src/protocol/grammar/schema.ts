/**
 * JSON under a JSON Schema, as a grammar (M3): the shape of a tool's parameters. A reference (P12) is allowed
 * wherever a value is.
 *
 * Properties appear in schema order. The grammar accepts everything that the schema allows in this order. It accepts
 * more where the schema uses constraints that a grammar cannot express, or not cheaply (patterns, numeric ranges,
 * large lengths). A note lists them; parameters are validated before dispatch in any case.
 */
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { choice, literal, times } from './rules.ts';
import type { Rules } from './rules.ts';

/** Engines unroll counted repetitions. Longer counts are left to validation. */
const LONGEST_COUNT = 128;

/** Keywords that the grammar does not enforce. */
const BEYOND = `pattern format multipleOf uniqueItems not if then else dependentRequired dependentSchemas propertyNames
patternProperties contains minContains maxContains unevaluatedProperties unevaluatedItems prefixItems
minProperties maxProperties maximum exclusiveMinimum exclusiveMaximum`.split(/\s+/);

interface Property {
  /** JSON, with quotes. */
  readonly key: string;
  readonly required: boolean;
  /** GBNF. */
  readonly value: string;
}

/** An object with these values (GBNF) in this order. A name ending in `?` is optional. */
export function shape(values: Readonly<Record<string, string>>): string {
  return objectOf(
    Object.entries(values).map(([name, value]) => ({
      key: JSON.stringify(name.replace(/\?$/, '')),
      required: !name.endsWith('?'),
      value,
    })),
  );
}

/** @param further a pair that may follow the properties any number of times */
function objectOf(properties: readonly Property[], further?: string): string {
  const pairs = properties.map(({ key, value }) => `${literal(key)} COLON ${value}`);
  const after = further === undefined ? '' : ` (COMMA ${further})*`;
  const behind = (from: number): string =>
    properties
      .slice(from)
      .map(({ required }, index) => ` ${required ? '' : '('}COMMA ${pairs[from + index] ?? ''}${required ? '' : ')?'}`)
      .join('') + after;
  const first = properties.findIndex(({ required }) => required);
  if (first !== -1) {
    const earlier = pairs.slice(0, first).map((pair) => `(${pair} COMMA)? `);
    return `OPEN ${earlier.join('')}${pairs[first] ?? ''}${behind(first + 1)} CLOSE`;
  }
  const ways = pairs.map((pair, index) => pair + behind(index + 1));
  if (further !== undefined) ways.push(further + after);
  return ways.length === 0 ? 'OPEN CLOSE' : `OPEN (${ways.join(' | ')})? CLOSE`;
}

/** Compiles the schema of one tool. */
export class SchemaGrammar {
  readonly #rules: Rules;
  readonly #root: JsonObject;
  readonly #name: string;
  readonly #notes: Set<string>;
  readonly #references = new Map<string, string>();

  /** @param notes collects the constraints that are left to validation */
  constructor(rules: Rules, name: string, schema: JsonObject, notes: Set<string>) {
    this.#rules = rules;
    this.#name = name;
    this.#root = schema;
    this.#notes = notes;
  }

  /** The whole parameters object. */
  parameters(): string {
    const target = this.#root['$ref'];
    const root = typeof target === 'string' ? (follow(this.#root, target) ?? {}) : this.#root;
    const { anyOf, oneOf, ...base } = flatten(root);
    const branches = [anyOf, oneOf].find(Array.isArray)?.filter(isJsonObject) ?? [];
    const ways = (branches.length === 0 ? [{}] : branches).map((branch) =>
      this.#object(merge(base, branch), this.#name),
    );
    return this.#rules.add(`${this.#name}-parameters`, choice(ways));
  }

  /** A value of this schema, or a reference to one. */
  #value(schema: Json, path: string): string {
    if (!isJsonObject(schema)) return 'value';
    if (typeof schema['$ref'] === 'string') return this.#referenced(schema['$ref'], path);
    const { anyOf, oneOf, ...base } = flatten(schema);
    const branches = [anyOf, oneOf].find(Array.isArray);
    if (branches !== undefined && branches.length > 0) {
      const ways = branches.map((branch) => this.#value(isJsonObject(branch) ? merge(base, branch) : branch, path));
      return this.#rules.add(path, choice(ways));
    }
    const options = Object.hasOwn(base, 'const') ? [base['const'] ?? null] : base['enum'];
    if (Array.isArray(options) && options.length > 0) {
      return choice([...options.map((option) => literal(JSON.stringify(option))), 'REFERENCE']);
    }
    const types = typesOf(base);
    if (types === null) return 'value';
    const ways = types.map((type) => this.#typed(type, base, path));
    // A value that may be any string can already spell a reference.
    return choice(ways.includes('STRING') ? ways : [...ways, 'REFERENCE']);
  }

  #typed(type: string, schema: JsonObject, path: string): string {
    if (type !== 'object') this.#noteBeyond(schema, path);
    switch (type) {
      case 'null':
        return '"null"';
      case 'boolean':
        return 'BOOLEAN';
      case 'number': {
        const least = schema['minimum'];
        if (typeof least === 'number' && least !== 0 && least !== 1) this.#note(path, 'minimum');
        return 'NUMBER';
      }
      case 'integer':
        return this.#integer(schema, path);
      case 'string': {
        const [min, max] = this.#counts(schema, 'Length', path);
        if (min === 0 && max === null) return 'STRING';
        return this.#rules.lexeme(path, `"\\"" ${times('CHARACTER', min, max)} "\\""`);
      }
      case 'array': {
        const [min, max] = this.#counts(schema, 'Items', path);
        const item = this.#value(schema['items'] ?? true, `${path}-item`);
        const more = times(`(COMMA ${item})`, Math.max(0, min - 1), max === null ? null : Math.max(0, max - 1));
        const items = max === 0 ? '' : min === 0 ? ` (${item} ${more})?` : ` ${item} ${more}`;
        return this.#rules.add(path, `OPEN-LIST${items} CLOSE-LIST`);
      }
      default:
        return this.#rules.add(path, this.#object(schema, path));
    }
  }

  /** Limits the sign; for unsigned integers also the number of digits. */
  #integer(schema: JsonObject, path: string): string {
    const { minimum, maximum } = schema;
    const isNatural = typeof minimum === 'number' && minimum >= 0;
    if (typeof minimum === 'number' && minimum !== 0 && minimum !== 1) this.#note(path, 'minimum');
    const digits = isNatural && typeof maximum === 'number' ? String(Math.max(1, Math.floor(maximum))).length : 15;
    const positive = digits === 1 ? '[1-9]' : `[1-9] [0-9]{0,${digits - 1}}`;
    if (isNatural && minimum >= 1) return this.#rules.lexeme(path, positive);
    return this.#rules.lexeme(path, `"0" | ${isNatural ? '' : '"-"? '}${positive}`);
  }

  #object(schema: JsonObject, path: string): string {
    this.#noteBeyond(schema, path);
    const declared = isJsonObject(schema['properties']) ? schema['properties'] : {};
    const required = Array.isArray(schema['required'])
      ? schema['required'].filter((name) => typeof name === 'string')
      : [];
    const undeclared = required
      .filter((name) => !Object.hasOwn(declared, name))
      .map((name): [string, Json] => [name, true]);
    const properties = [...Object.entries(declared), ...undeclared]
      .filter(([, value]) => value !== false)
      .map(([name, value]) => ({
        key: JSON.stringify(name),
        required: required.includes(name),
        value: this.#value(value, `${path}-${name}`),
      }));
    // An object without declared properties may contain anything; otherwise only what the schema allows.
    const open = schema['additionalProperties'] ?? properties.length === 0;
    return open === false
      ? objectOf(properties)
      : objectOf(properties, `STRING COLON ${this.#value(open, `${path}-further`)}`);
  }

  #referenced(target: string, path: string): string {
    const known = this.#references.get(target);
    if (known !== undefined) return known;
    const schema = follow(this.#root, target);
    if (schema === null || schema['$ref'] !== undefined) {
      this.#note(path, '$ref');
      return 'value';
    }
    const name = this.#rules.reserve(`${this.#name}-${target.split('/').at(-1) ?? 'ref'}`);
    this.#references.set(target, name);
    this.#rules.define(name, this.#value(schema, `${path}-value`));
    return name;
  }

  /** Counts that engines can unroll. Larger ones are capped. */
  #counts(schema: JsonObject, what: 'Length' | 'Items', path: string): [min: number, max: number | null] {
    const count = (keyword: string): number | null => {
      const value = schema[keyword];
      if (typeof value !== 'number' || value <= LONGEST_COUNT) return typeof value === 'number' ? value : null;
      this.#note(path, keyword);
      return null;
    };
    return [count(`min${what}`) ?? 0, count(`max${what}`)];
  }

  #noteBeyond(schema: JsonObject, path: string): void {
    for (const keyword of BEYOND) if (schema[keyword] !== undefined) this.#note(path, keyword);
  }

  #note(path: string, keyword: string): void {
    this.#notes.add(`${path}: "${keyword}" is not in the grammar; it is checked before dispatch`);
  }
}

/** The types a value may have; null means any. */
function typesOf(schema: JsonObject): string[] | null {
  const { type } = schema;
  if (typeof type === 'string') return [type];
  if (Array.isArray(type)) return type.filter((name) => typeof name === 'string');
  const has = (...keywords: string[]): boolean => keywords.some((keyword) => schema[keyword] !== undefined);
  if (has('properties', 'additionalProperties', 'required')) return ['object'];
  return has('items') ? ['array'] : null;
}

/** Merges `allOf` into the schema that contains it. */
function flatten({ allOf, ...base }: JsonObject): JsonObject {
  return Array.isArray(allOf) ? allOf.filter(isJsonObject).map(flatten).reduce(merge, base) : base;
}

/** The intersection of both schemas, as far as one schema can express it. */
function merge(base: JsonObject, other: JsonObject): JsonObject {
  const merged: JsonObject = { ...base, ...other };
  if (Array.isArray(base['required']) && Array.isArray(other['required'])) {
    merged['required'] = [...base['required'], ...other['required']];
  }
  const { properties } = base;
  if (!isJsonObject(properties) || !isJsonObject(other['properties'])) return merged;
  const both = { ...properties };
  for (const [name, value] of Object.entries(other['properties'])) {
    const mine = Object.hasOwn(both, name) ? both[name] : undefined;
    both[name] = isJsonObject(mine) && isJsonObject(value) ? merge(mine, value) : value;
  }
  return { ...merged, properties: both };
}

/** @param target for example `#/$defs/name` */
function follow(root: JsonObject, target: string): JsonObject | null {
  let current: Json | undefined = root;
  for (const step of target.split('/').slice(1)) {
    current = isJsonObject(current) && Object.hasOwn(current, step) ? current[step] : undefined;
  }
  return isJsonObject(current) ? current : null;
}
