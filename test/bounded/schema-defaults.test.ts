/** Completing values by their JSON Schema (D3). */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SchemaDefaults } from '../../src/bounded/schema-defaults.ts';
import { PreparedSchema } from '../../src/bounded/schema.ts';
import type { Json, JsonObject } from '../../src/domain/json.ts';
import { completeParameters } from '../../src/executors/validate-parameters.ts';

const complete = (schema: JsonObject, value: Json): Json =>
  new SchemaDefaults(new PreparedSchema(schema)).complete(value);
const object = (properties: JsonObject, more: JsonObject = {}): JsonObject => ({ type: 'object', properties, ...more });

const N = { type: 'integer', default: 5 };
const TEXT = { type: 'string' };

describe('[D3] a member that is left out gets its default', () => {
  test.each<[what: string, schema: JsonObject, value: Json, completed: Json]>([
    ['a parameter', object({ n: N }), {}, { n: 5 }],
    ['not one that is given', object({ n: N }), { n: 7 }, { n: 7 }],
    ['a required one too', object({ n: N }, { required: ['n'] }), {}, { n: 5 }],
    ['after those that are given', object({ n: N, a: TEXT }), { a: 'x' }, { a: 'x', n: 5 }],
    ['a member of an object', object({ a: object({ n: N }) }), { a: {} }, { a: { n: 5 } }],
    ['not of an object that is left out', object({ a: object({ n: N }) }), {}, {}],
    [
      'members of items',
      object({ a: { type: 'array', items: object({ n: N }) } }),
      { a: [{}, { n: 1 }] },
      { a: [{ n: 5 }, { n: 1 }] },
    ],
    ['of a referenced schema', object({ a: { $ref: '#/$defs/n' } }, { $defs: { n: N } }), {}, { a: 5 }],
    ['beside a reference', object({ a: { $ref: '#/$defs/n', default: 6 } }, { $defs: { n: N } }), {}, { a: 6 }],
    ['of allOf', { type: 'object', allOf: [object({ n: N })] }, {}, { n: 5 }],
    [
      'a default that is completed itself',
      object({ a: object({ n: N }, { required: ['n'], default: {} }) }),
      {},
      { a: { n: 5 } },
    ],
    ['null where null is allowed', object({ a: { type: ['string', 'null'], default: null } }), {}, { a: null }],
    [
      'not a default that its schema refuses',
      object({ a: { ...TEXT, default: 5 }, b: { ...TEXT, default: null } }),
      {},
      {},
    ],
    ['not of alternatives', { type: 'object', anyOf: [object({ n: N })] }, {}, {}],
    [
      'the name __proto__',
      object(JSON.parse('{"__proto__": {"default": 1}}') as JsonObject),
      {},
      JSON.parse('{"__proto__": 1}') as Json,
    ],
  ])('%s', (_what, schema, value, completed) => {
    expect(complete(schema, value)).toEqual(completed);
    expect(JSON.stringify(complete(schema, complete(schema, value)))).toBe(JSON.stringify(completed));
  });
});

describe('[D3] null means absent', () => {
  test.each<[what: string, schema: JsonObject, value: Json, completed: Json]>([
    ['for an optional parameter', object({ a: TEXT }), { a: null, b: 1 }, { b: 1 }],
    ['and gets the default', object({ n: N }, { required: ['n'] }), { n: null }, { n: 5 }],
    ['not for a required one', object({ a: TEXT }, { required: ['a'] }), { a: null }, { a: null }],
    [
      'not where null is a value',
      object({ a: { type: ['string', 'null'] }, b: {} }),
      { a: null, b: null },
      { a: null, b: null },
    ],
    [
      'not where a reference allows it',
      object({ a: { $ref: '#/$defs/a' } }, { $defs: { a: { enum: ['x', null] } } }),
      { a: null },
      { a: null },
    ],
    ['not for an unknown parameter', object({ a: TEXT }), { b: null }, { b: null }],
    ['inside of objects and lists', object({ a: { items: object({ b: TEXT }) } }), { a: [{ b: null }] }, { a: [{}] }],
  ])('%s', (_what, schema, value, completed) => {
    expect(complete(schema, value)).toEqual(completed);
  });

  test('without defaults, only null is made absent', () => {
    expect(completeParameters(object({ n: N, a: TEXT }), { n: null, a: null }, false)).toEqual({});
  });
});

test('[D3] what needs nothing is the same value', () => {
  const value = { a: 'x', n: 1, list: [{ n: 2 }] };
  expect(complete(object({ a: TEXT, n: N, list: { items: object({ n: N }) } }), value)).toBe(value);
});

test.each<[what: string, schema: JsonObject]>([
  ['that cannot be used', object({ n: N, a: { $ref: '#/nowhere' } })],
  ['with defaults without end', object({ a: { $ref: '#', default: {} } })],
])('[D3] a schema %s completes nothing', (_what, schema) => {
  const value = { b: 1 };
  expect(completeParameters(schema, value)).toBe(value);
  expect(completeParameters(schema, value)).toBe(value);
});

test.each<[where: string, schema: JsonObject]>([
  ['a list of schemas', object({}, { allOf: [object({ o: object({ n: N }) }), object({ o: { default: {} } })] })],
  [
    'a reference',
    object({ o: { default: {} } }, { $ref: '#/$defs/base', $defs: { base: object({ o: object({ n: N }) }) } }),
  ],
])('[D3] a default is completed by the other schema of its member, in %s', (_where, schema) => {
  expect(complete(schema, {})).toEqual({ o: { n: 5 } });
});

test('[D3] a large default for many members completes nothing', () => {
  const value = {};
  const names = Array.from({ length: 900 }, (_, index) => `p${index}`);
  const schema = object(Object.fromEntries(names.map((name) => [name, { $ref: '#/$defs/text' }])), {
    $defs: { text: { ...TEXT, default: 'x'.repeat(100_000) } },
  });
  expect(completeParameters(schema, value)).toBe(value);
});

test('[D3] schemas that complete each other without end complete nothing', () => {
  const value = { b: 1 };
  expect(
    completeParameters(object({}, { allOf: [object({ a: { default: null } }), object({ a: TEXT })] }), value),
  ).toBe(value);
});

test('[D3] completing twice changes nothing, whatever the value', () => {
  const schema = object(
    { n: N, a: TEXT, o: { $ref: '#/$defs/o' }, list: { type: 'array', items: { $ref: '#/$defs/o' } } },
    { $defs: { o: object({ n: N, deep: object({ t: { type: 'boolean', default: true } }, { default: {} }) }) } },
  );
  const names = fc.constantFrom('n', 'a', 'o', 'list', 'deep', 't');
  const { value } = fc.letrec<{ value: Json }>((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      fc.constantFrom<Json>(null, 1, 'x', true),
      fc.array(tie('value'), { maxLength: 2 }),
      fc.dictionary(names, tie('value'), { maxKeys: 4 }),
    ),
  }));
  fc.assert(
    fc.property(value, (given) => {
      const once = complete(schema, given);
      expect(complete(schema, once)).toEqual(once);
    }),
  );
});
