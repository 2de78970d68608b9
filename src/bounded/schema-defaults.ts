/**
 * Completes values by their JSON Schema (D3): a member that is left out gets its default, and null means absent for an
 * optional member that does not accept null.
 *
 * Reads `properties`, `items`, `$ref` and `allOf`. Alternatives (`anyOf`, `oneOf`, `if`) complete nothing, because which of
 * them is meant is not known. A default that its own schema refuses is a note for readers, and is not used.
 *
 * Invariants:
 *  1. Completing a completed value changes nothing.
 *  2. The result depends on the schema and the value only.
 */
import { isJsonObject } from '../domain/json.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { WorkMeter } from '../domain/work.ts';
import { jsonChars } from './json-size.ts';
import { matchesPart } from './schema-check.ts';
import { mapAt } from './schema-run.ts';
import { UnusableSchema } from './schema.ts';
import type { PreparedSchema, SchemaIssue } from './schema.ts';

/** A schema that refers to itself could give defaults without end. */
const NESTED_DEFAULTS = 8;

/** What a member is if it is left out, or null. */
interface MemberRule {
  /** Undefined: it stays absent. */
  readonly preset: Json | undefined;
  /** Of the preset, as JSON. */
  readonly chars: number;
  readonly isNullAbsent: boolean;
}

export class SchemaDefaults {
  /** Defaults that are not used, because their own schemas refuse them. Null is one for which it means absent. */
  readonly issues: readonly SchemaIssue[];
  readonly #schema: PreparedSchema;
  readonly #rules = new Map<JsonObject, MemberRule>();

  /**
   * Finds the rules of all members, so that no value pays for them.
   *
   * @param meter shared by the schemas of one folder of manifests
   * @throws WorkExceeded, UnusableSchema
   */
  constructor(schema: PreparedSchema, meter = new WorkMeter(limits.schemaSteps)) {
    schema.assertUsable();
    this.#schema = schema;
    const seen = new Set<JsonObject>();
    const issues: SchemaIssue[] = [];
    const visit = (part: Json | undefined, path: SchemaIssue['path']): void => {
      meter.charge();
      if (!isJsonObject(part) || seen.has(part) || path.length > limits.schemaDepth) return;
      seen.add(part);
      const { default: preset, $ref, allOf, items } = part;
      // A rule of the schema itself: that of a parameter may be read on its own.
      const isUsed = this.#rule(part, meter, 0).preset !== undefined;
      if (preset !== undefined && preset !== null && !isUsed) {
        issues.push({ path: [...path, 'default'], message: 'the schema does not accept this value' });
      }
      for (const [name, member] of Object.entries(mapAt(part, 'properties') ?? {})) {
        visit(member, [...path, 'properties', name]);
      }
      for (const [index, one] of (Array.isArray(allOf) ? allOf : []).entries()) visit(one, [...path, 'allOf', index]);
      if (typeof $ref === 'string') visit(schema.target($ref), [...path, '$ref']);
      visit(items, [...path, 'items']);
    };
    visit(schema.root, []);
    this.issues = issues;
  }

  /**
   * @param withDefaults false: only null is made absent
   * @returns the identical value if nothing changes
   * @throws WorkExceeded, UnusableSchema
   */
  complete(value: Json, withDefaults = true): Json {
    const run = { meter: new WorkMeter(limits.schemaSteps), withDefaults, nesting: 0 };
    let completed = value;
    // A default of one schema may have members that another schema for the same value completes.
    for (let round = 0; round <= NESTED_DEFAULTS; round += 1) {
      const next = this.#complete(run, this.#schema.root, completed, 0);
      if (next === completed) return completed;
      completed = next;
    }
    throw new UnusableSchema('its parts complete each other without end');
  }

  #complete(run: Run, schema: Json | undefined, value: Json, depth: number): Json {
    run.meter.charge();
    if (!isJsonObject(schema) || typeof value !== 'object' || value === null) return value;
    if (depth > limits.schemaDepth) {
      throw new UnusableSchema(`nested schemas are too deep (allowed: ${limits.schemaDepth} levels)`);
    }
    let completed = value;
    for (const other of this.#others(schema)) {
      completed = this.#complete(run, other, completed, depth + 1) as typeof value;
    }
    if (isJsonObject(completed)) return this.#members(run, schema, completed, depth);
    const { items } = schema;
    if (!Array.isArray(completed) || !isJsonObject(items)) return completed;
    const given = completed;
    const list = given.map((item) => this.#complete(run, items, item, depth + 1));
    return list.some((item, index) => item !== given[index]) ? list : given;
  }

  #members(run: Run, schema: JsonObject, value: JsonObject, depth: number): JsonObject {
    const properties = mapAt(schema, 'properties');
    if (properties === null) return value;
    const { required } = schema;
    const changed = new Map<string, Json | undefined>();
    for (const name of this.#schema.namesOf(properties)) {
      run.meter.charge();
      const member = properties[name];
      if (!isJsonObject(member)) continue;
      const given = Object.hasOwn(value, name) ? value[name] : undefined;
      let found = given;
      if (given === undefined || given === null) {
        const { preset, chars, isNullAbsent } = this.#rule(member, run.meter, run.nesting);
        const isRequired = preset === undefined && Array.isArray(required) && required.includes(name);
        if (given === null && isNullAbsent && !isRequired) found = undefined;
        if (found === undefined && run.withDefaults && preset !== undefined) {
          // The same default for many members is large as text.
          run.meter.chargeChars(chars);
          found = preset;
        }
      }
      if (found !== undefined) found = this.#complete(run, member, found, depth + 1);
      if (found !== given) changed.set(name, found);
    }
    if (changed.size === 0) return value;
    const all = [...Object.entries(value).filter(([name]) => !changed.has(name)), ...changed];
    // fromEntries defines own properties, even for `__proto__`.
    return Object.fromEntries(all.filter((entry): entry is [string, Json] => entry[1] !== undefined));
  }

  #rule(member: JsonObject, meter: WorkMeter, nesting: number): MemberRule {
    const known = this.#rules.get(member);
    if (known !== undefined) return known;
    const matches = (value: Json): boolean => matchesPart(this.#schema, member, value, meter);
    const completed = this.#presetOf(member, meter, nesting);
    const preset = completed !== undefined && matches(completed) ? completed : undefined;
    const rule = {
      preset,
      chars: preset === undefined ? 0 : jsonChars(preset, limits.substitutedChars, limits.jsonDepth, meter),
      isNullAbsent: !matches(null),
    };
    this.#rules.set(member, rule);
    return rule;
  }

  /** The default of a member, completed itself. */
  #presetOf(member: JsonObject, meter: WorkMeter, nesting: number): Json | undefined {
    const preset = this.#defaultIn(member, meter, 0);
    if (preset === undefined) return undefined;
    if (nesting >= NESTED_DEFAULTS) {
      throw new UnusableSchema(`defaults within defaults are too deep (allowed: ${NESTED_DEFAULTS} levels)`);
    }
    return this.#complete({ meter, withDefaults: true, nesting: nesting + 1 }, member, preset, 0);
  }

  /** Of the schema itself, or of what it refers to. */
  #defaultIn(schema: Json, meter: WorkMeter, depth: number): Json | undefined {
    meter.charge();
    if (!isJsonObject(schema) || depth > limits.schemaDepth) return undefined;
    if (schema['default'] !== undefined) return schema['default'];
    for (const other of this.#others(schema)) {
      const found = this.#defaultIn(other, meter, depth + 1);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Schemas that the same value must match. */
  #others({ $ref, allOf }: JsonObject): readonly Json[] {
    const target = typeof $ref === 'string' ? [this.#schema.target($ref)] : [];
    return Array.isArray(allOf) ? [...target, ...allOf] : target;
  }
}

interface Run {
  readonly meter: WorkMeter;
  readonly withDefaults: boolean;
  /** Defaults within defaults. */
  readonly nesting: number;
}
