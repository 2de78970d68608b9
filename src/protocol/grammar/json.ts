/**
 * JSON under a JSON Schema, as a grammar (M3): what a tool's parameters may look like, with a
 * reference (P12) wherever a value may stand.
 *
 * Properties come in the order of the schema. Where a schema says more than a grammar can (a pattern,
 * a condition, lengths of hundreds), the grammar admits more than the schema, and a note says so: the
 * parameters are validated before dispatch in any case.
 */
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { choice, many, noneOf, oneOf, optional, repeat, separated, sequence, text } from './model.ts';
import type { Expression, RuleBook } from './model.ts';
import { decimals, integers, UNBOUNDED } from './numbers.ts';
import type { Bounds } from './numbers.ts';
import { nameOtherThan } from './text.ts';

/** Engines unroll counted repetitions: longer ones are left to validation. */
const LONGEST_COUNT = 128;

export interface Property {
  readonly name: string;
  readonly required: boolean;
  readonly value: Expression;
}

/** The lexemes and rules that all JSON of one grammar shares. */
export class JsonGrammar {
  readonly book: RuleBook;
  /** White space that models put between tokens; bounded, so that none can go on for ever. */
  readonly space: Expression;
  readonly comma: Expression;
  readonly colon: Expression;
  readonly open: Expression;
  readonly close: Expression;
  /** One character of a string, or one escape. */
  readonly character: Expression;
  readonly string: Expression;
  /** A string that is more than white space. */
  readonly nonBlank: Expression;
  /** A string that is exactly one reference; at dispatch it becomes a value of any type. */
  readonly reference: Expression;
  readonly boolean: Expression;
  /** Any JSON value. */
  readonly value: Expression;
  /** Any JSON object. */
  readonly object: Expression;
  readonly #openList: Expression;
  readonly #closeList: Expression;

  constructor(book: RuleBook) {
    this.book = book;
    this.space = book.lexeme('space', choice(text(' '), sequence(text('\n'), repeat(oneOf('\t '), 0, 20))));
    this.comma = book.lexeme('comma', sequence(text(','), optional(this.space)));
    this.colon = book.lexeme('colon', sequence(text(':'), optional(this.space)));
    this.open = book.lexeme('open-object', sequence(text('{'), optional(this.space)));
    this.close = book.lexeme('close-object', sequence(optional(this.space), text('}')));
    this.#openList = book.lexeme('open-list', sequence(text('['), optional(this.space)));
    this.#closeList = book.lexeme('close-list', sequence(optional(this.space), text(']')));

    const hex = oneOf('0-9a-fA-F');
    const codeUnit = sequence(
      text('u'),
      choice(
        sequence(oneOf('0-9a-cA-CefEF'), repeat(hex, 3, 3)),
        sequence(oneOf('dD'), oneOf('0-7'), repeat(hex, 2, 2)),
        // a surrogate only with its other half
        sequence(oneOf('dD'), oneOf('89abAB'), repeat(hex, 2, 2), text('\\u'), oneOf('dD'), oneOf('c-fC-F'), hex, hex),
      ),
    );
    this.character = book.lexeme(
      'character',
      choice(noneOf('"\\\u0000-\u001F'), sequence(text('\\'), choice(oneOf('"\\/bfnrt'), codeUnit))),
    );
    this.string = book.lexeme('string', quoted(many(this.character)));
    // white space beyond ASCII passes for text: a negated class of it is not portable
    const blank = choice(oneOf(' '), sequence(text('\\'), oneOf('nrt')));
    const visible = choice(noneOf('" \\\u0000-\u001F'), sequence(text('\\'), oneOf('"\\/')));
    this.nonBlank = book.lexeme('non-blank', quoted(sequence(many(blank), visible, many(this.character))));

    const name = sequence(oneOf('A-Za-z_'), repeat(oneOf('A-Za-z0-9_'), 0, 63));
    const step = choice(
      sequence(text('.'), repeat(oneOf('A-Za-z0-9_'), 1, null)),
      sequence(text('['), repeat(oneOf('0-9'), 1, 9), text(']')),
    );
    const path = sequence(name, many(step));
    const named = choice(path, sequence(text('{'), path, text('}')));
    this.reference = book.lexeme('reference', quoted(sequence(text('$'), named)));

    this.boolean = book.lexeme('boolean', choice(text('true'), text('false')));
    const number = book.lexeme('number', decimals(UNBOUNDED) ?? text('0'));
    this.value = book.recursive('value', (itself) => {
      const pair = sequence(this.string, this.colon, itself);
      const object = book.rule('object', sequence(this.open, optional(separated(pair, this.comma)), this.close));
      const list = book.rule('list', this.list(itself, 0, null));
      return choice(object, list, this.string, number, this.boolean, text('null'));
    });
    this.object = book.rule(
      'any-object',
      sequence(this.open, optional(separated(sequence(this.string, this.colon, this.value), this.comma)), this.close),
    );
  }

  list(item: Expression, min: number, max: number | null): Expression {
    const items = max === 0 ? sequence() : separated(item, this.comma, min, max);
    return sequence(this.#openList, items, this.#closeList);
  }

  /** A string of so many characters, or a reference. */
  sizedString(name: string, min: number, max: number | null): Expression {
    const sized = quoted(repeat(this.character, min, max));
    // the shortest reference has two characters
    const holdsReferences = min <= 2 && max === null;
    return this.book.lexeme(name, holdsReferences ? sized : choice(sized, this.reference));
  }

  /** An object with these properties in this order; `further` = pairs that may stand between them. */
  properties(properties: readonly Property[], further: Expression | null = null): Expression {
    const pairs = properties.map(({ name, required, value }) => ({
      required,
      pair: sequence(text(JSON.stringify(name)), this.colon, value),
    }));
    const before = further === null ? sequence() : many(sequence(further, this.comma));
    const after = further === null ? sequence() : many(sequence(this.comma, further));
    const behind = (from: number): Expression[] => {
      const rest = pairs.slice(from).map(({ required, pair }) => {
        const more = sequence(this.comma, before, pair);
        return required ? more : optional(more);
      });
      return [...rest, after];
    };
    const firstRequired = pairs.find(({ required }) => required);
    if (firstRequired !== undefined) {
      const at = pairs.indexOf(firstRequired);
      const earlier = pairs.slice(0, at).map(({ pair }) => optional(before, pair, this.comma));
      return sequence(this.open, ...earlier, before, firstRequired.pair, ...behind(at + 1), this.close);
    }
    const ways = pairs.map(({ pair }, index) => sequence(before, pair, ...behind(index + 1)));
    if (further !== null) ways.push(separated(further, this.comma));
    return sequence(this.open, ways.length === 0 ? sequence() : optional(choice(...ways)), this.close);
  }
}

function quoted(inside: Expression): Expression {
  return sequence(text('"'), inside, text('"'));
}

/** Keywords that a grammar of this kind cannot hold to. */
const BEYOND = `pattern format multipleOf uniqueItems not if then else dependentRequired dependentSchemas propertyNames
patternProperties contains minContains maxContains unevaluatedProperties unevaluatedItems prefixItems`.split(/\s+/);

/** Compiles the schemas of one tool. */
export class SchemaGrammar {
  readonly #json: JsonGrammar;
  readonly #root: JsonObject;
  readonly #name: string;
  readonly #notes: Set<string>;
  readonly #references = new Map<string, Expression>();

  /** @param notes collects what the grammar leaves to validation */
  constructor(json: JsonGrammar, name: string, schema: JsonObject, notes: Set<string>) {
    this.#json = json;
    this.#name = name;
    this.#root = schema;
    this.#notes = notes;
  }

  /**
   * The whole parameters object.
   *
   * @param reserved names that a property beyond those of the schema must not have
   */
  parameters(reserved: readonly string[]): Expression {
    const target = this.#root['$ref'];
    const root = typeof target === 'string' ? (follow(this.#root, target) ?? {}) : this.#root;
    const schema = this.#flatten(root, this.#name);
    const { anyOf, oneOf: oneOfThese, ...base } = schema;
    const branches = Array.isArray(anyOf) ? anyOf : oneOfThese;
    const ways = Array.isArray(branches)
      ? branches.filter(isJsonObject).map((branch) => this.#object(merge(base, branch), this.#name, reserved))
      : [];
    const whole = ways.length === 0 ? this.#object(schema, this.#name, reserved) : choice(...ways);
    return this.#json.book.rule(`${this.#name}-parameters`, whole);
  }

  /** A value of this schema, or a reference to one. */
  #value(schema: Json, path: string): Expression {
    const json = this.#json;
    if (!isJsonObject(schema)) return json.value;
    const target = schema['$ref'];
    if (typeof target === 'string') return this.#referenced(target, path);
    const flat = this.#flatten(schema, path);
    for (const keyword of ['anyOf', 'oneOf']) {
      const branches = flat[keyword];
      if (!Array.isArray(branches)) continue;
      if (keyword === 'oneOf' && branches.length > 1) this.#note(path, 'oneOf', 'as anyOf');
      const { [keyword]: _, ...base } = flat;
      const ways = branches.map((branch) =>
        isJsonObject(branch) ? this.#value(merge(base, branch), path) : json.value,
      );
      return ways.length === 0 ? json.value : json.book.rule(path, choice(...ways));
    }
    const options = Object.hasOwn(flat, 'const') ? [flat['const'] ?? null] : flat['enum'];
    if (Array.isArray(options) && options.length > 0) {
      const literals = options.map((option) => text(JSON.stringify(option)));
      return choice(json.book.lexeme(path, choice(...literals)), json.reference);
    }
    const types = typesOf(flat);
    if (types === null) return json.value;
    const ways = types.map((type) => this.#typed(type, flat, path));
    // what may be a string can spell a reference anyway
    return types.includes('string') ? choice(...ways) : choice(...ways, json.reference);
  }

  #typed(type: string, schema: JsonObject, path: string): Expression {
    const json = this.#json;
    this.#noteBeyond(schema, path);
    switch (type) {
      case 'null':
        return text('null');
      case 'boolean':
        return json.boolean;
      case 'integer':
      case 'number': {
        const bounds = boundsOf(schema);
        const expression = type === 'integer' ? integers(bounds) : decimals(bounds);
        if (expression === null) return json.reference;
        return json.book.lexeme(path, expression);
      }
      case 'string': {
        const min = this.#count(schema, 'minLength', path) ?? 0;
        const max = this.#count(schema, 'maxLength', path);
        return min === 0 && max === null ? json.string : json.sizedString(path, min, max);
      }
      case 'array': {
        const min = this.#count(schema, 'minItems', path) ?? 0;
        const max = this.#count(schema, 'maxItems', path);
        const item = this.#value(schema['items'] ?? true, `${path}-item`);
        return json.book.rule(path, json.list(item, min, max));
      }
      default:
        return json.book.rule(path, this.#object(schema, path, []));
    }
  }

  #object(schema: JsonObject, path: string, reserved: readonly string[]): Expression {
    const json = this.#json;
    this.#noteBeyond(schema, path);
    const declared = isJsonObject(schema['properties']) ? schema['properties'] : {};
    const required = Array.isArray(schema['required']) ? schema['required'] : [];
    const properties = Object.entries(declared)
      .filter(([, value]) => value !== false)
      .map(([name, value]) => ({
        name,
        required: required.includes(name),
        value: this.#value(value, `${path}-${name}`),
      }));
    for (const name of required) {
      if (typeof name === 'string' && !Object.hasOwn(declared, name)) {
        properties.push({ name, required: true, value: json.value });
      }
    }
    const names = properties.map(({ name }) => name);
    // an object about which nothing is said may hold anything; else only what the schema invites
    const open = schema['additionalProperties'] ?? names.length === 0;
    if (open === false) return json.properties(properties);
    const value = isJsonObject(open) ? this.#value(open, `${path}-further`) : json.value;
    const taken = [...names, ...reserved];
    const key =
      taken.length === 0
        ? json.string
        : json.book.lexeme(`${path}-further-name`, sequence(text('"'), nameOtherThan(taken), text('"')));
    const pair = sequence(key, json.colon, value);
    if (names.length > 0) {
      for (const keyword of ['minProperties', 'maxProperties']) {
        if (schema[keyword] !== undefined) this.#note(path, keyword);
      }
      return json.properties(properties, pair);
    }
    const min = this.#count(schema, 'minProperties', path) ?? 0;
    const max = this.#count(schema, 'maxProperties', path);
    const pairs = max === 0 ? sequence() : separated(pair, json.comma, min, max);
    return sequence(json.open, pairs, json.close);
  }

  #referenced(target: string, path: string): Expression {
    const known = this.#references.get(target);
    if (known !== undefined) return known;
    const schema = follow(this.#root, target);
    if (schema === null || isRefCycle(this.#root, schema)) {
      this.#note(path, '$ref');
      return this.#json.value;
    }
    return this.#json.book.recursive(`${this.#name}-${target.split('/').at(-1) ?? 'ref'}`, (itself) => {
      this.#references.set(target, itself);
      return this.#value(schema, `${path}-value`);
    });
  }

  /** `allOf` merged into the schema that holds it. */
  #flatten(schema: JsonObject, path: string): JsonObject {
    const { allOf, ...base } = schema;
    if (!Array.isArray(allOf)) return schema;
    let merged = base;
    for (const part of allOf) {
      if (!isJsonObject(part) || part['$ref'] !== undefined) this.#note(path, 'allOf');
      else merged = merge(merged, this.#flatten(part, path));
    }
    return merged;
  }

  /** A count that engines can unroll; a longer one is left out. */
  #count(schema: JsonObject, keyword: string, path: string): number | null {
    const count = schema[keyword];
    if (typeof count !== 'number') return null;
    if (count <= LONGEST_COUNT) return count;
    this.#note(path, keyword, keyword.startsWith('min') ? `${LONGEST_COUNT} of ${count}` : `${count}`);
    return keyword.startsWith('min') ? LONGEST_COUNT : null;
  }

  #noteBeyond(schema: JsonObject, path: string): void {
    for (const keyword of BEYOND) if (schema[keyword] !== undefined) this.#note(path, keyword);
  }

  #note(path: string, keyword: string, detail?: string): void {
    this.#notes.add(
      `${path}: "${keyword}"${detail === undefined ? '' : ` (${detail})`} is not in the grammar; it is checked before dispatch`,
    );
  }
}

/** The types a value may have; null = any. */
function typesOf(schema: JsonObject): string[] | null {
  const { type } = schema;
  if (typeof type === 'string') return [type];
  if (Array.isArray(type)) {
    const names = type.filter((name) => typeof name === 'string');
    return names.includes('number') ? names.filter((name) => name !== 'integer') : names;
  }
  const has = (...keywords: string[]): boolean => keywords.some((keyword) => schema[keyword] !== undefined);
  if (has('properties', 'additionalProperties', 'required')) return ['object'];
  if (has('items')) return ['array'];
  return null;
}

function boundsOf(schema: JsonObject): Bounds {
  const number = (keyword: string): number | null => {
    const value = schema[keyword];
    return typeof value === 'number' ? value : null;
  };
  const [min, above, max, below] = [
    number('minimum'),
    number('exclusiveMinimum'),
    number('maximum'),
    number('exclusiveMaximum'),
  ];
  const exclusiveMin = above !== null && (min === null || above >= min);
  const exclusiveMax = below !== null && (max === null || below <= max);
  return { min: exclusiveMin ? above : min, max: exclusiveMax ? below : max, exclusiveMin, exclusiveMax };
}

/** Both at once, as far as one schema can say it: a schema that is closed admits its own properties alone. */
function merge(base: JsonObject, other: JsonObject): JsonObject {
  const merged: JsonObject = { ...base, ...other };
  const { required: left } = base;
  const { required: right } = other;
  if (Array.isArray(left) && Array.isArray(right)) merged['required'] = [...left, ...right];
  const ours = isJsonObject(base['properties']) ? base['properties'] : {};
  const theirs = isJsonObject(other['properties']) ? other['properties'] : {};
  const names = new Set([...Object.keys(ours), ...Object.keys(theirs)]);
  if (names.size === 0) return merged;
  const properties: JsonObject = {};
  for (const name of names) {
    const mine = Object.hasOwn(ours, name) ? ours[name] : undefined;
    const its = Object.hasOwn(theirs, name) ? theirs[name] : undefined;
    if (mine === undefined && base['additionalProperties'] === false) continue;
    if (its === undefined && other['additionalProperties'] === false) continue;
    properties[name] = isJsonObject(mine) && isJsonObject(its) ? merge(mine, its) : (its ?? mine ?? true);
  }
  merged['properties'] = properties;
  if (base['additionalProperties'] === false) merged['additionalProperties'] = false;
  return merged;
}

function follow(root: JsonObject, target: string): JsonObject | null {
  if (target === '#') return root;
  if (!target.startsWith('#/')) return null;
  let current: Json | undefined = root;
  for (const step of target.slice(2).split('/')) {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(current)) current = current[Number(key)];
    else current = isJsonObject(current) && Object.hasOwn(current, key) ? current[key] : undefined;
  }
  return isJsonObject(current) ? current : null;
}

/** Whether references lead only to references, in a circle. */
function isRefCycle(root: JsonObject, from: JsonObject): boolean {
  const seen = new Set<JsonObject>();
  for (let schema: JsonObject | null = from; schema !== null;) {
    const target: Json | undefined = schema['$ref'];
    if (typeof target !== 'string') return false;
    if (seen.has(schema)) return true;
    seen.add(schema);
    schema = follow(root, target);
  }
  return false;
}
