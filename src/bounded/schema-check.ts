/**
 * Checks a value against a JSON Schema (2020-12), with a work limit. Every application of a schema to a value is
 * charged. A keyword whose work depends on sizes is charged before it runs: schemas come from tenants and models,
 * values from models and clients, and `allOf`, `$ref`, `uniqueItems` and `contains` together can require any power of
 * their sizes.
 *
 * This file applies whole schemas, and schemas for the same value. The keywords for a type of value are in
 * schema-scalars.ts, schema-objects.ts and schema-arrays.ts.
 */
import { isJsonObject } from '../domain/json.ts';
import type { Json } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { WorkMeter } from '../domain/work.ts';
import { matchesPlainly } from './plain-schema.ts';
import { checkArray } from './schema-arrays.ts';
import { checkObject } from './schema-objects.ts';
import { below, Evaluated, listAt, SchemaRun, TOP } from './schema-run.ts';
import type { Applied, Place, SchemaError } from './schema-run.ts';
import { checkAny, checkNumber, checkText } from './schema-scalars.ts';
import { UnusableSchema } from './schema.ts';
import type { PreparedSchema } from './schema.ts';

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
  if (schema.plain !== null && matchesPlainly(schema.plain, value)) {
    meter.charge(APPLY_STEPS * (1 + schema.plain.types.size));
    return [];
  }
  const run = new SchemaRun(schema, meter, apply);
  run.apply(schema.root, value, TOP, schema.tracksEvaluated ? new Evaluated() : null);
  return run.errors;
}

/** Whether a value matches a part of the schema. @throws WorkExceeded, UnusableSchema */
export function matchesPart(schema: PreparedSchema, part: Json, value: Json, meter: WorkMeter): boolean {
  const seen = schema.tracksEvaluated ? new Evaluated() : null;
  return new SchemaRun(schema, meter, apply).apply(part, value, TOP, seen);
}

/** Cost of applying a schema to a value, in visits of a node. */
const APPLY_STEPS = 6;

const COMBINED = {
  anyOf: () => 'Instance does not match any subschemas.',
  allOf: () => 'Instance does not match every subschema.',
  oneOf: (matches: number) =>
    matches === 0 ? 'Instance does not match any subschema.' : `Instance matches more than one subschema (${matches}).`,
} as const;

/** Whether the value matches; otherwise the run's errors have the reasons. */
function apply(run: SchemaRun, schema: Json, value: Json, place: Place, seen: Evaluated | null): boolean {
  run.meter.charge(APPLY_STEPS);
  if (schema === true) return true;
  if (!isJsonObject(schema)) {
    if (schema !== false) throw new UnusableSchema('a schema must be a map, true or false');
    run.report('false', place, [], 'False boolean schema.');
    return false;
  }
  run.depth += 1;
  if (run.depth > limits.schemaDepth) {
    throw new UnusableSchema(`nested schemas are too deep (allowed: ${limits.schemaDepth} levels)`);
  }
  const applied: Applied = { schema, value, place, seen };
  let valid = reference(run, applied);
  valid = checkAny(run, applied) && valid;
  valid = combinations(run, applied) && valid;
  if (Array.isArray(value)) valid = checkArray(run, applied, value) && valid;
  else if (isJsonObject(value)) valid = checkObject(run, applied, value) && valid;
  else if (typeof value === 'number') valid = checkNumber(run, applied, value) && valid;
  else if (typeof value === 'string') valid = checkText(run, applied, value) && valid;
  run.depth -= 1;
  return valid;
}

function reference(run: SchemaRun, applied: Applied): boolean {
  const { $ref, $recursiveRef } = applied.schema;
  let valid = true;
  if ($ref !== undefined) {
    if (typeof $ref !== 'string') throw new UnusableSchema('"$ref" must be a string');
    valid = run.same(applied, run.schema.target($ref), ['$ref']);
  }
  if ($recursiveRef === '#') valid = run.same(applied, run.schema.root, ['$recursiveRef']) && valid;
  return valid;
}

function combinations(run: SchemaRun, applied: Applied): boolean {
  const { schema } = applied;
  let valid = true;
  if (schema['not'] !== undefined) {
    const start = run.errors.length;
    const matches = run.apply(schema['not'], applied.value, below(applied.place, ['not']), run.fresh(applied));
    run.errors.length = start;
    if (matches) valid = run.fail(applied, 'not', 'Instance matched "not" schema.');
  }
  for (const keyword of ['anyOf', 'allOf', 'oneOf'] as const) {
    const members = listAt(schema, keyword);
    if (members === null) continue;
    const start = run.errors.length;
    const matches = members.filter((member, index) => run.same(applied, member, [keyword, index])).length;
    if (keyword === 'anyOf' ? matches > 0 : matches === (keyword === 'allOf' ? members.length : 1)) {
      run.errors.length = start;
    } else valid = run.fail(applied, keyword, COMBINED[keyword](matches), start);
  }
  if (schema['if'] !== undefined) {
    const start = run.errors.length;
    const then = run.same(applied, schema['if'], ['if']) ? 'then' : 'else';
    run.errors.length = start;
    const next = schema[then];
    if (next !== undefined && !run.same(applied, next, [then])) {
      valid = run.fail(applied, 'if', `Instance does not match "${then}" schema.`, start);
    }
  }
  return valid;
}
