/** Keywords of JSON Schema about numbers and texts, and those about any value: `type`, `const`, `enum`. */
import { limits } from '../domain/limits.ts';
import { excerptOf } from './json-size.ts';
import { charactersOf, isMultipleOf, sameJson, typeOfJson } from './json-values.ts';
import { matchesFormat } from './schema-formats.ts';
import { listAt } from './schema-run.ts';
import type { Applied, SchemaRun } from './schema-run.ts';

/** Cost of the arithmetic with big integers. */
const MULTIPLE_STEPS = 80;
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

export function checkAny(run: SchemaRun, applied: Applied): boolean {
  const { schema, value } = applied;
  const { type, enum: allowed } = schema;
  let valid = true;
  if (type !== undefined) {
    const types = Array.isArray(type) ? type : [type];
    run.meter.charge(types.length);
    const found = typeOfJson(value);
    const whole = typeof value === 'number' && value % 1 === 0;
    if (!types.some((name) => name === found || (whole && name === 'integer'))) {
      const expected = excerptOf(type, limits.excerptChars);
      valid = run.fail(applied, 'type', `Instance type "${found}" is invalid. Expected ${expected}.`);
    }
  }
  const constant = schema['const'];
  if (constant !== undefined && !sameJson(value, constant, run.meter)) {
    valid = run.fail(applied, 'const', `Instance does not match ${excerptOf(constant, limits.excerptChars)}.`);
  }
  if (allowed !== undefined) {
    const values = listAt(schema, 'enum') ?? [];
    if (!values.some((item) => sameJson(value, item, run.meter))) {
      const shown = excerptOf(allowed, limits.excerptChars);
      valid = run.fail(applied, 'enum', `Instance does not match any of ${shown}.`);
    }
  }
  return valid;
}

export function checkNumber(run: SchemaRun, applied: Applied, value: number): boolean {
  const { multipleOf } = applied.schema;
  let valid = true;
  for (const [keyword, breaks, words] of BOUNDS) {
    const bound = applied.schema[keyword];
    if (typeof bound === 'number' && breaks(value, bound)) {
      valid = run.fail(applied, keyword, `${value} is ${words} ${bound}.`);
    }
  }
  if (typeof multipleOf === 'number') {
    run.meter.charge(MULTIPLE_STEPS);
    if (!isMultipleOf(value, multipleOf)) {
      valid = run.fail(applied, 'multipleOf', `${value} is not a multiple of ${multipleOf}.`);
    }
  }
  return valid;
}

export function checkText(run: SchemaRun, applied: Applied, value: string): boolean {
  const { minLength, maxLength, pattern, format } = applied.schema;
  let valid = true;
  if (typeof minLength === 'number' || typeof maxLength === 'number') {
    run.meter.chargeChars(value.length);
    const length = charactersOf(value);
    if (typeof minLength === 'number' && length < minLength) {
      valid = run.fail(applied, 'minLength', `String is too short (${length} < ${minLength}).`);
    }
    if (typeof maxLength === 'number' && length > maxLength) {
      valid = run.fail(applied, 'maxLength', `String is too long (${length} > ${maxLength}).`);
    }
  }
  if (typeof pattern === 'string' && !run.schema.pattern(pattern).test(value, run.meter)) {
    valid = run.fail(applied, 'pattern', 'String does not match pattern.');
  }
  if (typeof format === 'string' && !matchesFormat(format, value, run.meter)) {
    valid = run.fail(applied, 'format', `String does not match format "${format}".`);
  }
  return valid;
}
