import { expect, test } from 'vitest';
import { NO_PARAMETERS, toParameterSchema } from '../../../src/catalog/build/parameters.ts';
import type { Json } from '../../../src/domain/json.ts';

function read(written: Json): { schema: unknown; issues: string[] } {
  const issues: string[] = [];
  const schema = toParameterSchema(written, ({ path, message }) => issues.push(`${path.join('/')}: ${message}`));
  return { schema, issues };
}

const expected = {
  type: 'object',
  properties: { url: { type: 'string', description: 'Where' }, tries: { type: 'integer' } },
  required: ['url'],
  additionalProperties: false,
};

test.each<[string, Json]>([
  [
    'a list',
    [
      { name: 'url', type: 'string', description: 'Where', required: true },
      { name: 'tries', type: 'int' },
    ],
  ],
  ['a map of specs', { url: { type: 'str', description: 'Where', required: true }, tries: { type: 'integer' } }],
  ['a JSON Schema', expected],
])('[M3] %s gives the same schema', (_form, written) => {
  expect(read(written)).toEqual({ schema: expected, issues: [] });
});

test('[M3] a bare type is required unless it ends in a question mark', () => {
  expect(read({ a: 'string', b: 'number?', c: 'string[]', d: 'any', e: 'array<int>' }).schema).toEqual({
    type: 'object',
    properties: {
      a: { type: 'string' },
      b: { type: 'number' },
      c: { type: 'array', items: { type: 'string' } },
      d: {},
      e: { type: 'array', items: { type: 'integer' } },
    },
    required: ['a', 'c', 'd', 'e'],
    additionalProperties: false,
  });
});

test('[M3] a parameter can be named type, properties or required', () => {
  expect(read({ type: 'string', required: { type: 'boolean' } })).toMatchObject({
    issues: [],
    schema: { properties: { type: { type: 'string' }, required: { type: 'boolean' } } },
  });
  expect(read({ properties: { type: 'object' } })).toMatchObject({ issues: [] });
});

test('[M3] a tool without parameters accepts no parameters', () => {
  expect(read(null).schema).toBe(NO_PARAMETERS);
});

test.each<[string, Json, string]>([
  ['text', 'string', ': expected a list, a map of name to type, or a JSON Schema, found string "string"'],
  ['a nameless item', [{ type: 'string' }], '0: expected a map with "name" and "type", found {"type":"string"}'],
  ['a duplicate name', [{ name: 'a' }, { name: 'a' }], '1/name: parameter "a" is given twice'],
  [
    'a wrong type',
    { a: 'strng' },
    'a: unknown type "strng" (allowed: string, integer, number, boolean, array, object, null, any, string[])',
  ],
  ['a wrong type in a list', [{ name: 'a', type: 'strng' }], '0/type: unknown type "strng"'],
  ['a name with a space', { 'a b': 'string' }, 'a b: "a b" is not a parameter name'],
  ['a __proto__ key', JSON.parse('{"__proto__": "string"}') as Json, '__proto__: "__proto__" is not a parameter name'],
  [
    'a string as required',
    { a: { type: 'string', required: 'yes' } },
    'a/required: expected true or false, found "yes"',
  ],
  ['a broken pattern', { a: { type: 'string', pattern: '(' } }, 'a/pattern: "(" is not a regular expression'],
  [
    'a pattern that backtracks',
    { type: 'object', properties: { a: { items: { pattern: '(?=a)b' } } } },
    'properties/a/items/pattern: "(?=a)b" cannot be matched in linear time',
  ],
  [
    'a name pattern that backtracks',
    { a: { type: 'object', patternProperties: { '(a)\\1': {} } } },
    'a/patternProperties/(a)\\1: "(a)\\\\1" cannot be matched in linear time',
  ],
  [
    'a nested wrong type',
    { type: 'object', properties: { a: { items: { type: 'text' } } } },
    'properties/a/items/type: unknown type "text"',
  ],
  ['an enum that is not a list', { a: { enum: 'x' } }, 'a/enum: expected a list of allowed values, found string'],
  [
    'an unresolved reference',
    { type: 'object', properties: { a: { $ref: '#/$defs/none' } } },
    'properties/a/$ref: "#/$defs/none" does not exist',
  ],
  [
    'a schema whose root is a list',
    { $schema: 'x', type: 'array' },
    'type: parameters are an object, so "type" must be object, found "array"',
  ],
])('[M3] %s is reported with its place and the allowed values', (_what, written, issue) => {
  const { issues } = read(written);
  expect(issues).toHaveLength(1);
  expect(issues[0]?.startsWith(issue)).toBe(true);
});

test('[D3] a default that its own schema refuses is an issue, where it is written', () => {
  expect(read({ n: { type: 'int', default: 'five' }, m: { type: 'int', default: null } }).issues).toEqual([
    'n/default: the schema does not accept this value',
  ]);
  expect(read([{ name: 'n', type: 'int', default: 0.5 }]).issues).toEqual([
    '0/default: the schema does not accept this value',
  ]);
  const nested = {
    type: 'object',
    properties: { a: { type: 'object', properties: { b: { enum: ['x'], default: 'y' } } } },
  };
  expect(read(nested).issues).toEqual(['properties/a/properties/b/default: the schema does not accept this value']);
});
