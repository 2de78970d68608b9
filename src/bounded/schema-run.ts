/** One check of a value (schema-check.ts), as its keywords see it: what they charge, apply and report. */
import { isJsonObject } from '../domain/json.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { WorkMeter } from '../domain/work.ts';
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

/** Cost of recording an evaluated member. */
const EVALUATED_STEPS = 8;

/** Names of members may be long. */
const MESSAGE_CHARS = 1_000;

export type Step = string | number;

/** A position in the value and in the schema; formatted only for errors. */
export interface Place {
  readonly outer: Place | null;
  /** Relative to the outer place: path in the value (empty if it is the same value), and path in the schema. */
  readonly members: readonly Step[];
  readonly keywords: readonly Step[];
}

export const TOP: Place = { outer: null, members: [], keywords: [] };

/** Members and items that a schema has evaluated (`unevaluatedProperties`, `unevaluatedItems`). */
export class Evaluated {
  readonly names = new Set<string>();
  readonly items = new Set<number>();

  add(other: Evaluated): void {
    for (const name of other.names) this.names.add(name);
    for (const index of other.items) this.items.add(index);
  }
}

/** One schema, applied to one value. */
export interface Applied {
  readonly schema: JsonObject;
  readonly value: Json;
  readonly place: Place;
  /** Null if no schema needs it. */
  readonly seen: Evaluated | null;
}

/** Whether the value matches the schema; otherwise the errors have the reasons. */
type Apply = (run: SchemaRun, schema: Json, value: Json, place: Place, seen: Evaluated | null) => boolean;

export class SchemaRun {
  readonly errors: SchemaError[] = [];
  readonly schema: PreparedSchema;
  readonly meter: WorkMeter;
  readonly #apply: Apply;
  /** Schemas within schemas that are being applied. */
  depth = 0;

  constructor(schema: PreparedSchema, meter: WorkMeter, apply: Apply) {
    this.schema = schema;
    this.meter = meter;
    this.#apply = apply;
  }

  apply(schema: Json, value: Json, place: Place, seen: Evaluated | null): boolean {
    return this.#apply(this, schema, value, place, seen);
  }

  /** Evaluated members count only if the schema matches. */
  same({ value, place, seen }: Applied, schema: Json, keywords: readonly Step[]): boolean {
    const inner = seen === null ? null : new Evaluated();
    const valid = this.apply(schema, value, below(place, keywords), inner);
    if (valid && seen !== null && inner !== null) {
      this.meter.charge(EVALUATED_STEPS * (inner.names.size + inner.items.size));
      seen.add(inner);
    }
    return valid;
  }

  fresh({ seen }: Applied): Evaluated | null {
    return seen === null ? null : new Evaluated();
  }

  list(schema: JsonObject, keyword: string): readonly Json[] {
    const list = listAt(schema, keyword) ?? [];
    this.meter.charge(list.length);
    return list;
  }

  /** The names of a map in the schema; computed once for all values. */
  names(members: JsonObject | null): readonly string[] {
    if (members === null) return [];
    const names = this.schema.namesOf(members);
    this.meter.charge(names.length);
    return names;
  }

  /** @param before index at which the error is inserted, before the errors that it summarises; @returns false */
  fail({ place }: Applied, keyword: string, error: string, before = this.errors.length): false {
    return this.report(keyword, place, [keyword], error, before);
  }

  report(keyword: string, place: Place, keywords: readonly Step[], error: string, before = this.errors.length): false {
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

export function listAt(schema: JsonObject, keyword: string): readonly Json[] | null {
  const list = schema[keyword];
  if (list === undefined) return null;
  if (!Array.isArray(list)) throw new UnusableSchema(`"${keyword}" must be a list`);
  return list;
}

export function mapAt(schema: JsonObject, keyword: string): JsonObject | null {
  const map = schema[keyword];
  if (map === undefined) return null;
  if (!isJsonObject(map)) throw new UnusableSchema(`"${keyword}" must be a map`);
  return map;
}

export function below(outer: Place, keywords: readonly Step[], members: readonly Step[] = []): Place {
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
