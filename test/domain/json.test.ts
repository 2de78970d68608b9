import { expect, test } from 'vitest';
import { exceededLimit, parseJson, parseObject } from '../../src/domain/json.ts';

test('invalid JSON gives undefined; null is a value', () => {
  expect(['{', '', 'null', '[1]'].map(parseJson)).toEqual([undefined, undefined, null, [1]]);
  expect(['{"a":1}', '[1]', 'null', '{'].map(parseObject)).toEqual([{ a: 1 }, null, null, null]);
});

test.each([
  ['[[[1]]]', 'depth'],
  ['{"a":[[', 'depth'],
  ['["[[[", "\\"[[["]', null],
  ['[1,2,3]', null],
  ['[1,2,3,4]', 'values'],
  ['{"a":1,"b":2,"c":3}', 'members'],
  ['{"a":",,,,"}', null],
] as const)('a text of %s passes the limit %s', (text, limit) => {
  expect(exceededLimit(text, { depth: 2, values: 4, members: 2 })).toBe(limit);
});
