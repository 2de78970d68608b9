// oxlint-disable unicorn/no-thenable -- `then` is a keyword of JSON Schema
import { Validator } from '@cfworker/json-schema';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkValue } from '../../src/bounded/schema-check.ts';
import { PreparedSchema, UnusableSchema } from '../../src/bounded/schema.ts';
import type { Json, JsonObject } from '../../src/domain/json.ts';
import { limits } from '../../src/domain/limits.ts';
import { WorkExceeded, WorkMeter } from '../../src/domain/work.ts';

const check = (schema: JsonObject, value: Json) => checkValue(new PreparedSchema(schema), value);
const keywords = (schema: JsonObject, value: Json): string[] => check(schema, value).map(({ keyword }) => keyword);

const SCHEMAS: readonly JsonObject[] = [
  {},
  { type: 'string' },
  { type: ['integer', 'null'] },
  { type: 'number', minimum: 0, exclusiveMaximum: 3 },
  { exclusiveMinimum: 0, maximum: 1.5, multipleOf: 0.1 },
  { multipleOf: 3 },
  { const: { a: [1, null], b: 'x' } },
  { enum: [1, 'a', null, [1], { a: 1 }] },
  { minLength: 1, maxLength: 2 },
  { pattern: '^a+$' },
  { format: 'email' },
  { format: 'date-time' },
  { format: 'uri' },
  { format: 'nothing-known' },
  { type: 'object', properties: { a: { type: 'integer' }, b: { type: 'string' } }, required: ['a'] },
  { type: 'object', properties: { a: { type: 'integer', default: 1 }, b: {} }, additionalProperties: false },
  { properties: { a: false }, additionalProperties: { type: 'string' } },
  { properties: { a: true }, patternProperties: { '^b': { minimum: 1 } }, additionalProperties: false },
  { propertyNames: { maxLength: 1 } },
  { minProperties: 1, maxProperties: 1 },
  { dependentRequired: { a: ['b'] }, dependentSchemas: { b: { required: ['a'] } } },
  { dependencies: { a: ['b'], b: { minProperties: 2 } } },
  { type: 'array', items: { type: 'integer' }, minItems: 1, maxItems: 2 },
  { prefixItems: [{ type: 'integer' }, { type: 'string' }], items: false },
  { items: [{ type: 'integer' }], additionalItems: { type: 'string' } },
  { uniqueItems: true },
  { contains: { type: 'integer' } },
  { contains: { type: 'integer' }, minContains: 2, maxContains: 2 },
  { not: { type: 'string' } },
  { anyOf: [{ type: 'string' }, { minimum: 2 }] },
  { allOf: [{ type: 'number' }, { minimum: 2 }] },
  { oneOf: [{ type: 'integer' }, { minimum: 2 }] },
  { if: { type: 'string' }, then: { minLength: 2 }, else: { type: 'array' } },
  { $ref: '#/$defs/a', $defs: { a: { type: 'string' } } },
  { $ref: '#name', $defs: { a: { $anchor: 'name', type: 'integer' } } },
  { $id: 'https://example.com/s', $ref: 'https://example.com/s#/$defs/a%20b', $defs: { 'a b': { type: 'integer' } } },
  { properties: { a: { $ref: '#' } }, additionalProperties: false },
  { allOf: [{ properties: { a: true } }], unevaluatedProperties: false },
  {
    anyOf: [{ properties: { a: { type: 'integer' } }, required: ['a'] }, { properties: { b: true } }],
    unevaluatedProperties: false,
  },
  {
    if: { properties: { a: { const: 1 } }, required: ['a'] },
    then: { properties: { b: true } },
    unevaluatedProperties: false,
  },
  { prefixItems: [true], unevaluatedItems: { type: 'integer' } },
];

const VALUES = JSON.parse(`[
  null, true, 0, 1, 1.5, 0.3, -2, 3, "", "a", "aaa", "ab", "😀😀", "x@y.zz",
  "2026-01-01T00:00:00Z", "https://example.com/a?b#c",
  [], [1], [1, 1], [1, "a"], [{"a": 1, "b": 2}, {"b": 2, "a": 1}], ["a", 1, 2, 3], [[1], ["1"]],
  {}, {"a": 1}, {"a": 1, "b": "x"}, {"a": [1, null], "b": "x"}, {"b": 0}, {"bb": 2, "a": {}},
  {"a": {"a": {"a": {}}}}, {"a": {"a": {"c": 1}}}, {"constructor": 1}, {"__proto__": 1}
]`) as readonly Json[];

describe('[M3] a JSON Schema', () => {
  test.each(SCHEMAS)('%j gives the same result as ajv', (schema) => {
    const library = new Validator(structuredClone(schema), '2020-12', false);
    for (const value of VALUES)
      expect([value, check(schema, value).length === 0]).toEqual([value, library.validate(value).valid]);
  });

  test('any combination gives the same result as ajv', () => {
    const plain = SCHEMAS.filter(
      (schema) => !JSON.stringify(schema).includes('$') && !JSON.stringify(schema).includes('unevaluated'),
    );
    const part = fc.constantFrom<Json>(true, false, ...plain);
    const schemas = fc.oneof(
      fc.record({ allOf: fc.array(part, { maxLength: 3 }), not: part }),
      fc.record({
        anyOf: fc.array(part, { minLength: 1, maxLength: 3 }),
        properties: fc.dictionary(fc.constantFrom('a', 'b'), part),
      }),
      fc.record({ oneOf: fc.array(part, { minLength: 1, maxLength: 3 }), items: part }),
      fc.record({ if: part, then: part, else: part, additionalProperties: part }),
    );
    fc.assert(
      fc.property(schemas, fc.constantFrom(...VALUES), (written, value) => {
        const schema = written as JsonObject;
        const library = new Validator(structuredClone(schema), '2020-12', false);
        expect(check(schema, value).length === 0).toBe(library.validate(value).valid);
      }),
      { numRuns: 500 },
    );
  });

  test('reports the positions of its errors', () => {
    const schema: JsonObject = {
      properties: { 'a/b': { items: { $ref: '#/$defs/~1x' } } },
      $defs: { '/x': { minLength: 2 } },
    };
    expect(check(schema, { 'a/b': ['xx', 'x'] }).at(-1)).toEqual({
      keyword: 'minLength',
      instanceLocation: '#/a~1b/1',
      keywordLocation: '#/properties/a~1b/items/$ref/minLength',
      error: 'String is too short (1 < 2).',
    });
    expect(keywords({ anyOf: [{ type: 'string' }, { minimum: 2 }] }, 1)).toEqual(['anyOf', 'type', 'minimum']);
    expect(check({ oneOf: [{}, {}] }, 1)[0]?.error).toContain('more than one');
  });

  test.each<[string, JsonObject]>([
    ['an unresolved reference', { $ref: '#/$defs/a' }],
    ['another document', { $ref: 'https://example.com/schema' }],
    ['a self-reference', { $ref: '#' }],
    [
      'circular references',
      { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: { allOf: [{ $ref: '#/$defs/a' }] } } },
    ],
    ['an enum that is not a list', { enum: 'x' }],
    ['properties that are not a map', { properties: [] }],
    ['a subschema that is a string', { not: 'x' }],
    ['too many parts', { allOf: Array.from({ length: limits.schemaParts }, () => ({})) }],
    ['a broken pattern', { properties: { a: { pattern: '(' } } }],
    ['a pattern that backtracks', { $defs: { a: { patternProperties: { '(?=a)': {} } } } }],
  ])('with %s is refused', (_, schema) => {
    expect(() => check(schema, {})).toThrow(UnusableSchema);
  });
});

/** Each level applies the next one twice: 2 to the power of 40 evaluations. */
const doubled = (keyword: string): JsonObject => ({
  $ref: '#/$defs/l0',
  $defs: Object.fromEntries(
    Array.from({ length: 40 }, (_, level) => [
      `l${level}`,
      level === 39
        ? { type: 'string' }
        : { [keyword]: [{ $ref: `#/$defs/l${level + 1}` }, { $ref: `#/$defs/l${level + 1}` }] },
    ]),
  ),
});
const numbers = (length: number): number[] => Array.from({ length }, (_, index) => index);
const named = (length: number): JsonObject => Object.fromEntries(numbers(length).map((index) => [`k${index}`, index]));
const members = (length: number): JsonObject => Object.fromEntries(numbers(length).map((index) => [`k${index}`, true]));
let nested: Json = { end: 1 };
for (let level = 0; level < 60; level += 1) nested = { a: nested, b: level };

describe('[M3] the work of a check is limited', () => {
  test.each<[string, JsonObject, Json]>([
    ['allOf within allOf', doubled('allOf'), 1],
    ['oneOf within oneOf', doubled('oneOf'), 1],
    [
      'a recursive schema',
      { allOf: [{ additionalProperties: { $ref: '#' } }, { additionalProperties: { $ref: '#' } }] },
      nested,
    ],
    ['a large enum with many items', { items: { enum: numbers(4_000) } }, numbers(5_000)],
    [
      'contains in many subschemas',
      { allOf: numbers(100).map(() => ({ contains: { minimum: 1e9 } })) },
      numbers(20_000),
    ],
    [
      'many patterns for many names',
      { patternProperties: Object.fromEntries(numbers(90).map((index) => [`^x${index}`, true])) },
      named(5_000),
    ],
    ['many properties with many items', { items: { properties: members(4_000) } }, numbers(5_000).map(() => ({}))],
    ['multiples of huge numbers', { items: { multipleOf: 5e-324 } }, numbers(100_000).map(() => 1.7e308)],
    ['a pattern for a long text', { pattern: '^[ab]*a[ab]{300}[^ab]$' }, 'ab'.repeat(50_000)],
    ['a format for long texts', { items: { format: 'email' } }, numbers(2_000).map(() => 'x'.repeat(10_000))],
    ['many constants', { items: { const: numbers(4_000) } }, numbers(500).map(() => numbers(4_000))],
    [
      'unevaluated properties',
      {
        allOf: numbers(70).map(() => ({ properties: members(60), additionalProperties: true })),
        unevaluatedProperties: false,
      },
      named(3_000),
    ],
    [
      'large unique items',
      { allOf: numbers(50).map(() => ({ uniqueItems: true })) },
      numbers(5_000).map((index) => numbers(5).map(() => index)),
    ],
    ['many patterns', { allOf: numbers(1_000).map((index) => ({ pattern: `^a{${index}}$` })) }, 'a'],
  ])('%s', (_, schema, value) => {
    expect(() => check(schema, value)).toThrow(WorkExceeded);
  });

  test('unique items cost the sum of their sizes, not the square of their number', () => {
    const meter = new WorkMeter(limits.schemaSteps);
    expect(checkValue(new PreparedSchema({ uniqueItems: true }), numbers(100_000), meter)).toEqual([]);
    expect(meter.spent).toBeLessThan(limits.schemaSteps);
  });

  test('only a few errors are kept', () => {
    expect(check({ items: { type: 'string' } }, numbers(20_000))).toHaveLength(limits.schemaErrors);
  });

  test('a format that is expensive in ajv is refused', () => {
    expect(keywords({ format: 'url' }, `http://a${'1D'.repeat(40)}"`)).toEqual([]);
    expect(keywords({ format: 'url' }, 'no address')).toEqual(['format']);
  });
});
