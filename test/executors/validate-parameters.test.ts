import { expect, test } from 'vitest';
import type { JsonObject } from '../../src/domain/json.ts';
import { validateParameters } from '../../src/executors/validate-parameters.ts';

const schema: JsonObject = {
  type: 'object',
  properties: {
    url: { type: 'string', minLength: 3, pattern: '^http' },
    method: { type: 'string', enum: ['GET', 'HEAD'] },
    tries: { type: 'integer', minimum: 1, maximum: 5 },
    ratio: { type: ['number', 'null'] },
    items: { type: 'array', items: { type: 'object', properties: { id: { type: 'integer' } }, required: ['id'] } },
    'a/b~c': { type: 'string' },
    either: { oneOf: [{ type: 'string' }, { type: 'boolean' }] },
    exact: { const: 7 },
  },
  required: ['url'],
  additionalProperties: false,
};

test('[M3] valid parameters pass', () => {
  const parameters = {
    url: 'http://x',
    method: 'GET',
    tries: 2,
    ratio: null,
    items: [{ id: 1 }],
    either: true,
    exact: 7,
  };
  expect(validateParameters(schema, parameters)).toBeNull();
});

test.each<[JsonObject, string]>([
  [{}, 'parameters.url: is missing (expected: string)'],
  [{ url: 5 }, 'parameters.url: expected string, got number 5'],
  [
    { url: 'ht' },
    'parameters.url: has 2 characters (allowed: at least 3); parameters.url: "ht" does not match the pattern "^http"',
  ],
  [{ url: 'http', method: 'PUT' }, 'parameters.method: "PUT" is not allowed (allowed: GET, HEAD)'],
  [{ url: 'http', method: 3 }, 'parameters.method: expected string, got number 3 (allowed: GET, HEAD)'],
  [{ url: 'http', tries: 9 }, 'parameters.tries: 9 is out of range (allowed: at most 5)'],
  [{ url: 'http', tries: 0 }, 'parameters.tries: 0 is out of range (allowed: at least 1)'],
  [{ url: 'http', tries: 1.5 }, 'parameters.tries: expected integer, got number 1.5'],
  [{ url: 'http', ratio: 'x' }, 'parameters.ratio: expected number, null, got string "x"'],
  [{ url: 'http', items: [{ id: 1 }, { id: 'x' }] }, 'parameters.items[1].id: expected integer, got string "x"'],
  [{ url: 'http', items: [{}] }, 'parameters.items[0].id: is missing (expected: integer)'],
  [{ url: 'http', 'a/b~c': 1 }, 'parameters.a/b~c: expected string, got number 1'],
  [{ url: 'http', exact: 8 }, 'parameters.exact: 8 is not allowed (allowed: 7)'],
  [
    { url: 'http', ulr: 'x' },
    'parameters.ulr: unknown parameter (allowed: url, method, tries, ratio, items, a/b~c, either, exact)',
  ],
])('[M3] %j gives an exact issue', (parameters, issue) => {
  expect(validateParameters(schema, parameters)).toContain(issue);
});

test('[M3] one error gives one issue', () => {
  expect(validateParameters(schema, { url: 'http', items: [{ id: 'x' }] })).toBe(
    'parameters.items[0].id: expected integer, got string "x"',
  );
  expect(validateParameters(schema, { url: 'http', ulr: 1 })).not.toContain(';');
});

test('[M3] a value that matches no alternative is reported as such', () => {
  expect(validateParameters(schema, { url: 'http', either: 4 })).toContain(
    'parameters.either: matches none of the allowed forms',
  );
});

test('[M3] at most five errors are reported', () => {
  const wide: JsonObject = { type: 'object', additionalProperties: { type: 'string' } };
  const issue = validateParameters(
    wide,
    Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`p${index}`, index])),
  );
  expect(issue?.split('; ')).toHaveLength(6);
  expect(issue).toMatch(/; and 4 more$/);
});

test('[M3] an unusable schema gives an issue instead of an exception', () => {
  expect(validateParameters({ type: 'object', properties: { a: { $ref: '#/nowhere' } } }, { a: 1 })).toContain(
    'cannot be used',
  );
});

test('[M3] a huge value is quoted in part', () => {
  const issue = validateParameters(schema, { url: 'http', tries: 'x'.repeat(100_000) });
  expect(issue?.length).toBeLessThan(300);
});

test('[M3] names of Object.prototype members are not parameters', () => {
  const parameters = JSON.parse('{"url": "http", "__proto__": {"a": 1}}') as JsonObject;
  expect(validateParameters(schema, parameters)).toContain('parameters.__proto__: unknown parameter');
  expect(validateParameters({ ...schema, required: ['toString'] }, { url: 'http' })).toContain(
    'parameters.toString: is missing',
  );
});

test('[M3] an issue below a reference says what the referenced part allows', () => {
  const referring: JsonObject = {
    type: 'object',
    properties: { who: { $ref: '#/$defs/person' }, kind: { $ref: '#/$defs/kind' } },
    $defs: {
      person: { type: 'object', properties: { name: { type: 'string', minLength: 2 } }, required: ['name'] },
      kind: { enum: ['a', 'b'] },
    },
  };
  expect(validateParameters(referring, { who: { name: 'x' }, kind: 'c' })).toBe(
    'parameters.who.name: has 1 characters (allowed: at least 2); parameters.kind: "c" is not allowed (allowed: a, b)',
  );
  expect(validateParameters(referring, { who: {} })).toBe('parameters.who.name: is missing (expected: string)');
});
