/**
 * A JSON Schema (2020-12), analysed once: its references, its patterns, and whether it is small enough to use.
 * `schema-check.ts` checks values, with a work limit.
 *
 * Not supported: references to other documents, `$dynamicRef`, and patterns that need backtracking.
 */
import { isJsonObject } from '../domain/json.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { WorkMeter } from '../domain/work.ts';
import { excerptOf } from './json-size.ts';
import { compilePattern } from './pattern.ts';
import { plainSchema } from './plain-schema.ts';
import type { PlainSchema } from './plain-schema.ts';
import type { Pattern } from './pattern.ts';

/** Why a schema cannot be used, with the position: `['properties', 'a', 'pattern']`. */
export interface SchemaIssue {
  readonly path: readonly (string | number)[];
  readonly message: string;
}

export class UnusableSchema extends Error {
  override readonly name = 'UnusableSchema';
}

/** Keywords by the type of their value. */
const ONE = `additionalItems additionalProperties contains else if not propertyNames then unevaluatedItems
  unevaluatedProperties`.split(/\s+/);
const LISTS = ['allOf', 'anyOf', 'oneOf', 'prefixItems'];
const NAMED = ['$defs', 'definitions', 'dependentSchemas', 'patternProperties', 'properties'];

export class PreparedSchema {
  readonly root: JsonObject;
  /** In schema order; empty if the schema can be used. */
  readonly issues: readonly SchemaIssue[];
  /** Whether any part uses `unevaluatedProperties` or `unevaluatedItems`. */
  readonly tracksEvaluated: boolean;
  /** The schema for a quick check; null if it takes a full one. */
  readonly plain: PlainSchema | null;
  readonly #patterns = new Map<string, Pattern>();
  readonly #anchors = new Map<string, JsonObject>();
  readonly #names = new WeakMap<JsonObject, readonly string[]>();
  readonly #targets = new Map<string, Json | null>();

  /**
   * @param meter shared by the schemas of one folder of manifests
   * @throws WorkExceeded if reading it takes too long
   */
  constructor(root: JsonObject, meter: WorkMeter = new WorkMeter(limits.schemaSteps)) {
    this.root = root;
    const issues: SchemaIssue[] = [];
    let parts = 0;
    let tracks = false;
    const walk = (schema: Json, path: SchemaIssue['path']): void => {
      meter.charge();
      parts += 1;
      if (!isJsonObject(schema)) return;
      if (parts > limits.schemaParts || path.length > limits.schemaDepth) return;
      const { pattern, patternProperties, $anchor } = schema;
      if (typeof pattern === 'string') this.#addPattern(pattern, [...path, 'pattern'], issues, meter);
      if (isJsonObject(patternProperties)) {
        for (const name of Object.keys(patternProperties)) {
          this.#addPattern(name, [...path, 'patternProperties', name], issues, meter);
        }
      }
      if (typeof $anchor === 'string') this.#anchors.set($anchor, schema);
      if (schema['unevaluatedProperties'] !== undefined || schema['unevaluatedItems'] !== undefined) tracks = true;
      for (const [keys, member] of subschemas(schema)) walk(member, [...path, ...keys]);
    };
    walk(root, []);
    if (parts > limits.schemaParts) {
      issues.unshift({ path: [], message: `the schema has too many parts (allowed: ${limits.schemaParts})` });
    }
    this.issues = issues;
    this.tracksEvaluated = tracks;
    this.plain = issues.length === 0 ? plainSchema(root) : null;
  }

  /** @throws UnusableSchema if the schema has issues */
  assertUsable(): void {
    const [issue] = this.issues;
    if (issue === undefined) return;
    const where = issue.path.length === 0 ? '' : `${issue.path.join('.')}: `;
    throw new UnusableSchema(where + issue.message);
  }

  /** @throws UnusableSchema for a pattern that is not at a place where schemas have patterns */
  pattern(source: string): Pattern {
    const pattern = this.#patterns.get(source);
    if (pattern === undefined)
      throw new UnusableSchema(`the pattern ${excerptOf(source, limits.excerptChars)} cannot be used`);
    return pattern;
  }

  /** The target of a `$ref`. @throws UnusableSchema if it has no target in this schema */
  target(reference: string): Json {
    let target = this.#targets.get(reference);
    if (target === undefined) {
      target = this.#find(reference) ?? null;
      this.#targets.set(reference, target);
    }
    if (target === null) throw new UnusableSchema(`unresolved $ref ${excerptOf(reference, limits.excerptChars)}`);
    return target;
  }

  /** The names of a map in this schema. */
  namesOf(members: JsonObject): readonly string[] {
    let names = this.#names.get(members);
    if (names === undefined) {
      names = Object.keys(members);
      this.#names.set(members, names);
    }
    return names;
  }

  #find(reference: string): Json | undefined {
    const { $id } = this.root;
    const own = typeof $id === 'string' && reference.startsWith($id) ? reference.slice($id.length) : reference;
    if (own === '#' || own === '') return this.root;
    if (!own.startsWith('#/')) return own.startsWith('#') ? this.#anchors.get(own.slice(1)) : undefined;
    let current: Json | undefined = this.root;
    for (const step of own.slice(2).split('/')) {
      const key = decoded(step).replaceAll('~1', '/').replaceAll('~0', '~');
      if (Array.isArray(current)) current = current[Number(key)];
      else current = isJsonObject(current) && Object.hasOwn(current, key) ? current[key] : undefined;
    }
    return current;
  }

  #addPattern(source: string, path: SchemaIssue['path'], issues: SchemaIssue[], meter: WorkMeter): void {
    if (this.#patterns.has(source)) return;
    const compiled = compilePattern(source, meter);
    if (compiled.ok) this.#patterns.set(source, compiled.pattern);
    else issues.push({ path, message: `${excerptOf(source, limits.excerptChars)} ${compiled.reason}` });
  }
}

/** The direct subschemas of a schema, with their paths. */
function* subschemas(schema: JsonObject): Generator<readonly [path: readonly (string | number)[], schema: Json]> {
  for (const keyword of ONE) {
    const member = schema[keyword];
    if (member !== undefined) yield [[keyword], member];
  }
  for (const keyword of NAMED) {
    const members = schema[keyword];
    if (isJsonObject(members)) for (const [name, member] of Object.entries(members)) yield [[keyword, name], member];
  }
  for (const keyword of LISTS) {
    const members = schema[keyword];
    if (Array.isArray(members)) for (const [index, member] of members.entries()) yield [[keyword, index], member];
  }
  const { items, dependencies } = schema;
  if (Array.isArray(items)) for (const [index, member] of items.entries()) yield [['items', index], member];
  else if (items !== undefined) yield [['items'], items];
  if (isJsonObject(dependencies)) {
    for (const [name, member] of Object.entries(dependencies)) yield [['dependencies', name], member];
  }
}

function decoded(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}
