import { describe, expect, test } from 'vitest';
import type { Json } from '../../src/domain/json.ts';
import { limits } from '../../src/domain/limits.ts';
import { conditionNames, evaluateCondition } from '../../src/protocol/condition.ts';

const VALUES: Record<string, Json> = {
  n: 6,
  price: 1.5,
  s: 'hello',
  yes: true,
  list: [1, 2, 3],
  object: { a: { b: 'c' } },
  nothing: null,
};

describe('[S9] names of a condition', () => {
  test.each([
    ['n > 1', ['n']],
    ['$n > 1 && ${object.a}.b == "$not"', ['n', 'object']],
    ['list.exists(x, x > n) && size(list) > 0', ['n', 'list']],
    ['type(n) == int', ['n']],
    ['has(object.a) ? yes : nothing == null', ['object', 'yes', 'nothing']],
    ['[n, price].size() > 1 || {"k": s}["k"] == "x"', ['n', 'price', 's']],
    ['list.size() > 0 && map.x', ['list', 'map']],
    ['n >', []],
    ['', []],
  ])('%s', (expression, names) => {
    expect(conditionNames(expression)).toEqual(names);
  });
});

describe('[S9] evaluating', () => {
  test.each([
    ['n == 6 && n > 5.5 && n >= 6', true],
    ['n + 1 == 7', true],
    ['n * price == 9.0', true],
    ['$n > 10', false],
    ['s.contains("ell") && s.startsWith("h")', true],
    ['object.a.b == "c"', true],
    ['has(object.x)', false],
    ['nothing == null', true],
    ['"b" in object.a', true],
    ['2 in list', true],
    ['list.all(x, x < 4)', true],
    ['list[0] == 1 && size(list) == 3', true],
    ['yes', true],
    ['!yes', false],
  ])('%s is %s', (expression, value) => {
    expect(evaluateCondition(expression, VALUES)).toEqual({ ok: true, value });
  });
  test.each([
    ['n', /a number/],
    ['s', /a text/],
    ['unknown > 1', /"unknown" has no value/],
    ['toString == 1', /no value/],
    ['constructor == 1', /no value/],
    ['object.constructor == 1', /constructor/],
    ['object.missing == 1', /missing/],
    ['n >', /cannot be evaluated/],
    ['s.matches("(a+)+$")', /matches\(\) is not allowed.*contains/],
    ['list.all(x, list.all(y, x == y))', /inside another/],
    ['["a"].join("") == "a"', /join/],
    ['n.foo()', /cannot be evaluated/],
  ])('%s is an error', (expression, message) => {
    const result = evaluateCondition(expression, VALUES);
    expect(result.ok).toBe(false);
    expect(result.ok ? '' : result.message).toMatch(message);
  });
  test('has a limit on its length and its nodes', () => {
    expect(evaluateCondition(`yes${' '.repeat(limits.conditionChars)}`, VALUES).ok).toBe(false);
    expect(evaluateCondition(Array.from({ length: 200 }, () => 'yes').join('&&'), VALUES).ok).toBe(false);
    expect(evaluateCondition(`${'('.repeat(500)}yes${')'.repeat(500)}`, VALUES).ok).toBe(false);
  });
});
