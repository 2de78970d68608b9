/** The grammar rules of a JSON Schema (M3), and their form for llguidance. */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../src/domain/json.ts';
import { toLark } from '../../../src/protocol/grammar/lark.ts';
import { choice, literal, Rules, times } from '../../../src/protocol/grammar/rules.ts';
import { SchemaGrammar, shape } from '../../../src/protocol/grammar/schema.ts';

/** The rules of a parameter `v` with this schema, and the notes about it. */
function compiled(
  schema: JsonObject,
  further: JsonObject = {},
): { readonly rules: readonly string[]; readonly notes: readonly string[] } {
  const rules = new Rules();
  const before = new Set(rules.toString().split('\n'));
  const notes = new Set<string>();
  const root = { type: 'object', properties: { v: schema }, required: ['v'], additionalProperties: false, ...further };
  const name = new SchemaGrammar(rules, 't', root, notes).parameters();
  rules.define('root', name);
  const lines = rules.toString().split('\n');
  return {
    rules: lines
      .filter((line) => /^(?:t|T)-/.test(line) && !before.has(line))
      .map((line) => line.replace(/^(.*?) ::= /, '$1: ')),
    notes: [...notes],
  };
}

const value = (schema: JsonObject): string => {
  const { rules } = compiled(schema);
  return rules.map((rule) => /^t-parameters: OPEN "\\"v\\"" COLON (.*) CLOSE$/.exec(rule)?.[1] ?? rule).join('; ');
};

describe('[M3] a value', () => {
  test.each<[string, JsonObject, string]>([
    ['anything', {}, 'value'],
    ['null', { type: 'null' }, '("null" | REFERENCE)'],
    ['a boolean', { type: 'boolean' }, '(BOOLEAN | REFERENCE)'],
    ['a number', { type: 'number' }, '(NUMBER | REFERENCE)'],
    ['a string', { type: 'string' }, 'STRING'],
    ['a string with minLength 0', { type: 'string', minLength: 0 }, 'STRING'],
    [
      'a string with a length limit',
      { type: 'string', minLength: 2, maxLength: 2 },
      '(T-V | REFERENCE); T-V: "\\"" CHARACTER{2} "\\""',
    ],
    ['a string with minLength 1', { type: 'string', minLength: 1 }, '(T-V | REFERENCE); T-V: "\\"" CHARACTER+ "\\""'],
    ['an integer', { type: 'integer' }, '(T-V | REFERENCE); T-V: "0" | "-"? [1-9] [0-9]{0,14}'],
    ['a natural number', { type: 'integer', minimum: 0 }, '(T-V | REFERENCE); T-V: "0" | [1-9] [0-9]{0,14}'],
    ['a positive integer', { type: 'integer', minimum: 1 }, '(T-V | REFERENCE); T-V: [1-9] [0-9]{0,14}'],
    [
      'a natural number with a number of digits',
      { type: 'integer', minimum: 0, maximum: 99.5 },
      '(T-V | REFERENCE); T-V: "0" | [1-9] [0-9]{0,1}',
    ],
    ['a digit', { type: 'integer', minimum: 1, maximum: 9 }, '(T-V | REFERENCE); T-V: [1-9]'],
    ['zero only', { type: 'integer', minimum: 0, maximum: 0 }, '(T-V | REFERENCE); T-V: "0" | [1-9]'],
    [
      'an integer with only a maximum',
      { type: 'integer', maximum: 9 },
      '(T-V | REFERENCE); T-V: "0" | "-"? [1-9] [0-9]{0,14}',
    ],
    ['a constant', { const: null }, '("null" | REFERENCE)'],
    ['an enum', { enum: ['a', 1] }, '("\\"a\\"" | "1" | REFERENCE)'],
    ['an empty enum', { enum: [], type: 'null' }, '("null" | REFERENCE)'],
    ['a list', { type: 'array' }, '(t-v | REFERENCE); t-v: OPEN-LIST (value (COMMA value)*)? CLOSE-LIST'],
    ['an empty list', { type: 'array', maxItems: 0 }, '(t-v | REFERENCE); t-v: OPEN-LIST CLOSE-LIST'],
    [
      'a list with one item',
      { items: { type: 'string' }, minItems: 1, maxItems: 1 },
      '(t-v | REFERENCE); t-v: OPEN-LIST STRING "" CLOSE-LIST',
    ],
    [
      'a list with several items',
      { type: 'array', items: { type: 'string' }, minItems: 2, maxItems: 4 },
      '(t-v | REFERENCE); t-v: OPEN-LIST STRING (COMMA STRING){1,3} CLOSE-LIST',
    ],
    ['alternatives', { oneOf: [{ type: 'string' }, { type: 'null' }] }, 't-v; t-v: (STRING | ("null" | REFERENCE))'],
    [
      'the first of two kinds of alternatives',
      { anyOf: [{ type: 'null' }], oneOf: [{ type: 'string' }] },
      't-v; t-v: ("null" | REFERENCE)',
    ],
    ['no alternatives', { anyOf: [], type: 'string' }, 'STRING'],
    [
      'alternatives with a common base',
      { type: 'integer', anyOf: [{ minimum: 1, maximum: 9 }] },
      't-v-2; t-v-2: (T-V | REFERENCE); T-V: [1-9]',
    ],
    [
      'a required undeclared property',
      { required: ['a', 7] },
      '(t-v | REFERENCE); t-v: OPEN "\\"a\\"" COLON value CLOSE',
    ],
    [
      'a forbidden property',
      { properties: { a: false, b: { type: 'string' } } },
      '(t-v | REFERENCE); t-v: OPEN ("\\"b\\"" COLON STRING)? CLOSE',
    ],
    [
      'an open object',
      { type: 'object' },
      '(t-v | REFERENCE); t-v: OPEN (STRING COLON value (COMMA STRING COLON value)*)? CLOSE',
    ],
    [
      'an object of strings',
      { additionalProperties: { type: 'string' } },
      '(t-v | REFERENCE); t-v: OPEN (STRING COLON STRING (COMMA STRING COLON STRING)*)? CLOSE',
    ],
    [
      'optional properties',
      { properties: { a: { type: 'string' }, b: { type: 'string' } } },
      '(t-v | REFERENCE); t-v: OPEN ("\\"a\\"" COLON STRING (COMMA "\\"b\\"" COLON STRING)? | "\\"b\\"" COLON STRING)? CLOSE',
    ],
    [
      'an optional property between others',
      { properties: { a: { type: 'string' }, b: { type: 'string' }, c: { type: 'string' } }, required: ['b'] },
      '(t-v | REFERENCE); t-v: OPEN ("\\"a\\"" COLON STRING COMMA)? "\\"b\\"" COLON STRING (COMMA "\\"c\\"" COLON STRING)? CLOSE',
    ],
    ['types, of which one is a string', { type: ['string', 'null', 7] }, '(STRING | "null")'],
  ])('%s', (_title, schema, expected) => {
    expect(value(schema)).toBe(expected);
  });

  test.each<[JsonObject, readonly string[]]>([
    [{ type: 'number', minimum: 2 }, ['t-v: "minimum"']],
    [{ type: 'number', minimum: 1 }, []],
    [{ type: 'number', minimum: 0 }, []],
    [{ type: 'integer', minimum: -1 }, ['t-v: "minimum"']],
    [{ type: 'integer', minimum: 0 }, []],
    [{ type: 'string', minLength: 129 }, ['t-v: "minLength"']],
    [{ type: 'string', minLength: 128 }, []],
    [{ type: 'array', maxItems: 129 }, ['t-v: "maxItems"']],
    [{ type: 'object', minProperties: 1 }, ['t-v: "minProperties"']],
    [{ $ref: '#/nowhere' }, ['t-v: "$ref"']],
    [{ type: 'string', format: 'date', pattern: 'x' }, ['t-v: "pattern"', 't-v: "format"']],
  ])('for %j the notes say what is checked later', (schema, notes) => {
    expect(compiled(schema).notes).toEqual(
      notes.map((note) => `${note} is not in the grammar; it is checked before dispatch`),
    );
  });

  test('a definition is a separate rule, created once, and can be recursive', () => {
    const $defs = {
      node: { type: 'object', properties: { next: { $ref: '#/$defs/node' } }, additionalProperties: false },
    };
    const { rules, notes } = compiled({ $ref: '#/$defs/node' }, { $defs });
    expect(notes).toEqual([]);
    expect(rules).toEqual([
      't-parameters: OPEN "\\"v\\"" COLON t-node CLOSE',
      't-node: (t-v-value | REFERENCE)',
      't-v-value: OPEN ("\\"next\\"" COLON t-node)? CLOSE',
    ]);
    const twice = compiled({ items: { $ref: '#/$defs/s' }, type: 'array' }, { $defs: { s: { type: 'null' } } });
    expect(twice.rules[1]).toBe('t-v: OPEN-LIST (t-s (COMMA t-s)*)? CLOSE-LIST');
  });

  test('the root can be a definition or alternatives', () => {
    const rules = new Rules();
    const root = { $ref: '#/$defs/p', $defs: { p: { properties: { a: { type: 'string' } }, required: ['a'] } } };
    rules.define('root', new SchemaGrammar(rules, 't', root, new Set()).parameters());
    expect(rules.toString()).toContain('t-parameters ::= OPEN "\\"a\\"" COLON STRING CLOSE\n');
    const two = new Rules();
    const of = (name: string): JsonObject => ({ properties: { [name]: { type: 'string' } }, required: [name] });
    two.define(
      'root',
      new SchemaGrammar(two, 't', { type: 'object', anyOf: [of('a'), of('b')] }, new Set()).parameters(),
    );
    expect(two.toString()).toContain(
      't-parameters ::= (OPEN "\\"a\\"" COLON STRING CLOSE | OPEN "\\"b\\"" COLON STRING CLOSE)\n',
    );
  });

  test('several schemas for one value all apply', () => {
    const part = (name: string, required: readonly string[]): JsonObject => ({
      properties: { [name]: { type: 'string' } },
      required: [...required],
    });
    const both = { ...part('a', ['a']), allOf: [part('b', ['b']), { allOf: [part('a', [])] }, 7] };
    expect(value(both)).toContain('t-v: OPEN "\\"a\\"" COLON STRING COMMA "\\"b\\"" COLON STRING CLOSE');
    const merged = {
      properties: { a: { type: 'integer', maximum: 9 } },
      required: ['a'],
      allOf: [{ properties: { a: { minimum: 1 } } }],
    };
    expect(value(merged)).toContain('T-V-A: [1-9]');
  });
});

describe('[P18] parts of rules', () => {
  test('a repeated item', () => {
    expect([
      times('X', 0, 0),
      times('X', 2, 2),
      times('X', 0, 3),
      times('X', 0, null),
      times('X', 1, null),
      times('X', 2, null),
    ]).toEqual(['""', 'X{2}', 'X{0,3}', 'X*', 'X+', 'X{2} X*']);
    expect([choice(['a']), choice(['a', 'b', 'a']), literal('a"b\n')]).toEqual(['a', '(a | b)', '"a\\"b\\n"']);
    expect(shape({ a: 'X', 'b?': 'Y' })).toBe('OPEN "\\"a\\"" COLON X (COMMA "\\"b\\"" COLON Y)? CLOSE');
  });

  test('names are unique, and consist of characters that grammars allow', () => {
    const rules = new Rules();
    expect([
      rules.reserve('A b_c!'),
      rules.reserve('a-b-c'),
      rules.reserve('9x'),
      rules.reserve('éé'),
      rules.reserve('REFERENCE'),
    ]).toEqual(['a-b-c', 'a-b-c-2', 'x', 'rule', 'reference-2']);
    expect(rules.lexeme('a b', '"x"')).toBe('A-B');
    rules.define('root', 'one "two three" [four]');
    rules.define('one', '"1"');
    rules.define('two', '"2"');
    rules.define('four', '"4"');
    expect(rules.toString()).toBe('root ::= one "two three" [four]\none ::= "1"\n');
  });

  test.each([
    ['# a comment', '// a comment'],
    ['root ::= a-b "a-b ::= {2}" C-D', 'start: a_b "a-b ::= {2}" C_D'],
    ['X ::= [a-z/]{2,3} [0-9] [x]*', 'X: /[a-z\\/]{2,3}/ /[0-9]/ /[x]*/'],
    ['x ::= (a b){2} c{1,3}', 'x: (a b)~2 c~1..3'],
  ])('%s in Lark is %s', (gbnf, lark) => {
    expect(toLark(gbnf)).toBe(lark);
    expect(toLark(`${gbnf}\n${gbnf}`)).toBe(`${lark}\n${lark}`);
  });
});
