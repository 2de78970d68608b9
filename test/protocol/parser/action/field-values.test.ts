/** Values of an action's fields in every accepted spelling (P5, P6, P18). */
import { describe, expect, test } from 'vitest';
import type { Json } from '../../../../src/domain/json.ts';
import {
  bareName,
  isBackoff,
  isCount,
  parseExactJson,
  readBoolean,
  readDuration,
  readList,
  readMode,
  readNumber,
  snakeCase,
} from '../../../../src/protocol/parser/action/field-values.ts';

const spelled = <T>(cases: readonly (readonly [given: Json, value: T])[]): readonly (readonly [Json, T])[] => cases;

describe('[P6] values', () => {
  test.each(
    spelled<string | null>([
      ['sync', 'sync'],
      ['async', 'async'],
      ['fire_and_forget', 'fire_and_forget'],
      ['background', 'fire_and_forget'],
      ['fireAndForget', 'fire_and_forget'],
      ['Fire-And-Forget', 'fire_and_forget'],
      [' fire  and forget ', 'fire_and_forget'],
      ['ASYNC', 'async'],
      ['soon', null],
      ['', null],
      [1, null],
      [['async'], null],
      [null, null],
    ]),
  )('the mode %j is %j', (given, value) => expect(readMode(given)).toBe(value));

  test.each(
    spelled<boolean | null>([
      [true, true],
      [false, false],
      [1, true],
      [0, false],
      [2, null],
      ['true', true],
      [' Yes ', true],
      ['1', true],
      ['FALSE', false],
      ['no', false],
      ['0', false],
      ['', null],
      ['maybe', null],
      [null, null],
      [['true'], null],
    ]),
  )('the boolean %j is %j', (given, value) => expect(readBoolean(given)).toBe(value));

  test.each(
    spelled<number | null>([
      [3, 3],
      ['3', 3],
      [' 2.5 ', 2.5],
      ['', null],
      ['  ', null],
      ['x', Number.NaN],
      [null, null],
      [true, null],
      [[3], null],
    ]),
  )('the number %j is %j', (given, value) => expect(readNumber(given)).toBe(value));

  test.each(
    spelled<number | null>([
      [30, 30_000],
      [1.5, 1_500],
      ['30', 30_000],
      ['1.5s', 1_500],
      ['1 sec', 1_000],
      ['2 Seconds', 2_000],
      ['500ms', 500],
      ['500 MS', 500],
      ['2m', 120_000],
      ['2 min', 120_000],
      ['0.5 minutes', 30_000],
      [' 3s ', 3_000],
      ['', null],
      ['s', null],
      ['1h', null],
      ['x1s', null],
      ['1s x', null],
      ['1..5s', null],
      [-1, null],
      ['Infinity', null],
      [null, null],
      [true, null],
    ]),
  )('the duration %j is %j ms', (given, value) => expect(readDuration(given, 0)).toBe(value));

  test('a duration has a minimum, and is optional', () => {
    expect([readDuration(1, 1), readDuration(0.999, 1), readDuration('500ms', 1), readDuration(undefined, 0)]).toEqual([
      1_000,
      null,
      null,
      null,
    ]);
    expect(readDuration(0.000_4, 0)).toBe(0);
  });

  test.each(
    spelled<Json>([
      ['a', ['a']],
      ['a.b-c_1', ['a.b-c_1']],
      ['none', null],
      ['NULL', null],
      ['undefined', null],
      ['nonesuch', ['nonesuch']],
      ['[null]', null],
      [' none ', null],
      ['a, b', ['a', 'b']],
      ['["a","b"]', ['a', 'b']],
      ["['a', `b`]", ['a', 'b']],
      ['["a","b"', ['a', 'b']],
      ['a,,b,', ['a', 'b']],
      ['""', []],
      ['[]', []],
      ['', []],
      ['[[a]]', ['[a]']],
      ['""a""', ['a']],
      ['$a', ['$a']],
    ]),
  )('the list %j is %j', (given, value) => expect(readList(String(given))).toEqual(value));

  test.each([
    ['$a', 'a'],
    ['${a}', 'a'],
    [' $a ', 'a'],
    ['a', 'a'],
    [' a ', 'a'],
    ['$', '$'],
    ['${a', 'a'],
    ['$a.b', 'a.b'],
    ['x$a', 'x$a'],
    ['${a}{b}', '${a}{b}'],
  ])('the name %j is %j', (given, name) => expect(bareName(given)).toBe(name));

  test.each([
    ['dependsOn', 'depends_on'],
    ['depends-on', 'depends_on'],
    ['Depends_On', 'depends_on'],
    ['output2Key', 'output2_key'],
    ['a-b-c', 'a_b_c'],
    ['ID', 'id'],
  ])('the field %s is %s', (given, name) => expect(snakeCase(given)).toBe(name));

  test('counts are integers from zero, and there are three kinds of backoff', () => {
    expect([0, 1, 2 ** 53 - 1, 2 ** 53, -1, 1.5, '1', undefined].map((value) => isCount(value))).toEqual([
      true,
      true,
      true,
      false,
      false,
      false,
      false,
      false,
    ]);
    expect(['none', 'linear', 'exponential', 'constant', '', undefined].map((value) => isBackoff(value))).toEqual([
      true,
      true,
      true,
      false,
      false,
      false,
    ]);
    expect([parseExactJson('{"a":[1]}'), parseExactJson('{a:1}'), parseExactJson('')]).toEqual([
      { a: [1] },
      undefined,
      undefined,
    ]);
  });
});
