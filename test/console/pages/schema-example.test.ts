/** Inputs that fit the schema of a workflow, to begin with (U4). */
import { describe, expect, test } from 'vitest';
import { exampleOf, inputsIn } from '../../../console/pages/schema-example.ts';
import * as limits from '../../../console/parts/limits.ts';
import type { Json } from '../../../src/client/index.ts';

const string = { type: 'string' };

describe('[U4] an example of a schema', () => {
  test.each<[string, Json, Json]>([
    [
      'the members of an object',
      { type: 'object', properties: { a: string, b: { type: 'boolean' } } },
      { a: '', b: false },
    ],
    ['one item of a list', { type: 'array', items: { type: 'integer' } }, [0]],
    ['no item of unknown items', { type: 'array' }, []],
    ['the default, before anything else', { type: 'string', default: 'x', enum: ['y'] }, 'x'],
    ['the first of a list of values', { enum: ['small', 'large'] }, 'small'],
    ['nothing of an unknown type', { type: 'constructor' }, null],
    ['nothing of several types', { type: ['null', 'number'] }, null],
    ['nothing of everything', true, null],
    ['no members of an object without any', { type: 'object', properties: {} }, {}],
    ['members that are called like those of any object', { properties: { constructor: string } }, { constructor: '' }],
  ])('is %s', (_what, schema, example) => {
    expect(exampleOf(schema)).toEqual(example);
  });

  test('has an end, however deep or wide the schema is', () => {
    let deep: Json = string;
    for (let level = 0; level < 1_000; level += 1) deep = { type: 'array', items: deep };
    expect(JSON.stringify(exampleOf(deep)).length).toBeLessThan(100);
    const wide = { properties: Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`m${n}`, string])) };
    expect(Object.keys(exampleOf(wide) as object)).toHaveLength(limits.exampleMembers);
  });
});

describe('[U4] the text of inputs', () => {
  test.each([
    ['', { inputs: {} }],
    [' \n', { inputs: {} }],
    ['{"n": 1}', { inputs: { n: 1 } }],
    ['null', { issue: expect.stringContaining('must be a JSON object') }],
    ['{"n": ', { issue: expect.stringContaining('Not JSON') }],
  ])('%j', (text, expected) => {
    expect(inputsIn(text)).toEqual(expected);
  });
});
