/** What a condition is charged for its work (S9). The figures pin the tariff: a step is about a visited node. */
import { describe, expect, test } from 'vitest';
import type { Json } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import { WorkMeter } from '../../../src/domain/work.ts';
import { evaluateCondition } from '../../../src/bounded/conditions/condition.ts';
import { toCel } from '../../../src/bounded/conditions/condition-work.ts';

type Values = Record<string, Json>;

function stepsOf(expression: string, values: Values): number {
  const meter = new WorkMeter(limits.conditionSteps);
  // Converted values are kept for later conditions.
  evaluateCondition(expression, structuredClone(values), meter);
  return meter.spent;
}

/** A text of this length. Converting it costs 1 step, and 1 more per 16 characters. */
const text = (chars: number, character = 'x'): string => character.repeat(chars);
const time = '2026-01-01T00:00:00Z';

describe('[S9] steps', () => {
  test.each<[what: string, expression: string, values: Values, steps: number]>([
    ['a literal: its visit and its work', 'true', {}, 2],
    ['a name with a number: conversion is free', 'n', { n: 1 }, 2],
    ['a text is converted', 'a', { a: text(160) }, 13],
    ['a list is converted: 1 step per item', 'l', { l: [1, 2, 3] }, 5],
    ['an object is converted: 8 steps per member', 'o', { o: { a: 1, b: 2 } }, 18],
    ['subtraction has no cost of its own', 'n - m', { n: 1, m: 1 }, 6],
    ['numbers are compared', 'n == m', { n: 1, m: 2 }, 9],
    ['texts of equal length are compared', 'a == b', { a: text(160), b: text(160, 'y') }, 40],
    ['texts of different lengths are not read', 'a == b', { a: text(160), b: text(320, 'y') }, 39],
    ['lists of equal length are compared item by item', 'l == m', { l: [1, 2, 3], m: [1, 2, 3] }, 22],
    ['objects are compared member by member', 'o == p', { o: { a: 1, b: 2 }, p: { a: 1, b: 2 } }, 45],
    ['objects of different sizes are not read', 'o == p', { o: { a: 1, b: 2 }, p: { a: 1 } }, 31],
    ['map literals are compared member by member', '{"a": n, "b": n} == {"a": n, "b": n}', { n: 1 }, 45],
    ['a number and a text', 'n == a', { n: 1, a: text(160) }, 179],
    ['membership compares with every item', 'n in l', { l: [1, 2, 3], n: 3 }, 21],
    ['membership of a text', 'a in l', { a: text(160), l: [text(160), 'y'] }, 46.0625],
    ['membership in an object', '"a" in o', { o: { a: 1, b: 2, c: 3 } }, 33],
    ['a < b reads both texts', 'a < b', { a: text(160), b: text(80) }, 83],
    ['a >= b as well', 'a >= b', { a: text(160), b: text(80) }, 83],
    ['a + b as well', 'a + b', { a: text(160), b: text(80) }, 83],
    ['a comprehension over 3 items', 'l.all(x, true)', { l: [1, 2, 3] }, 32],
    ['7 steps for each further item', 'l.all(x, true)', { l: [1, 2, 3, 4] }, 39],
    ['a function reads its text', 'size(a)', { a: text(160) }, 55],
    ['a method with a second value', 'a.split(",")', { a: text(160) }, 57.25],
    ['a list is not read', 'size(l)', { l: [1, 2, 3] }, 7],
    ['contains: the product of both lengths', 'a.contains(b)', { a: text(512), b: text(4, 'y') }, 81.25],
    ['startsWith reads only the affix', 'a.startsWith(b)', { a: text(512), b: text(160) }, 61],
    ['a duration: the cube of its length', 'duration(a)', { a: '1234567890s' }, 1_339.437_5],
    ['a part of a time', 'timestamp(a).getHours()', { a: time }, 13.25],
    ['in another time zone', 'timestamp(a).getHours("Europe/Paris")', { a: time }, 2_018.25],
    ['an error inside a comprehension: 200 steps at each level', 'l.exists(x, x.y == 1)', { l: [1, 2] }, 3_228],
    ['the branch that is taken', 'n > 0 ? a == b : true', { n: 1, a: text(160), b: text(160, 'y') }, 48.5],
    ['not the other one', 'n > 1 ? a == b : true', { n: 1, a: text(160), b: text(160, 'y') }, 32.5],
  ])('%s: %s', (_what, expression, values, steps) => {
    expect(stepsOf(expression, values)).toBe(steps);
  });
});

describe('[S9] values of a condition', () => {
  const convert = (value: Json): unknown => toCel(value, new WorkMeter(limits.conditionSteps));

  test('safe integers are `int`, other numbers `double`', () => {
    const safe = Number.MAX_SAFE_INTEGER;
    expect([7, -safe, safe, safe + 1, 1.5].map(convert)).toEqual([7n, BigInt(-safe), BigInt(safe), safe + 1, 1.5]);
  });

  test('lists and objects are converted with everything in them', () => {
    expect(convert({ a: [1, { b: 2 }], c: null, d: 'x', e: true })).toEqual(
      new Map<string, unknown>([
        ['a', [1n, new Map([['b', 2n]])]],
        ['c', null],
        ['d', 'x'],
        ['e', true],
      ]),
    );
  });

  test('nest as deep as the limit and no deeper', () => {
    const lists = (depth: number): Json => JSON.parse(`${'['.repeat(depth)}${']'.repeat(depth)}`) as Json;
    const objects = (depth: number): Json => JSON.parse(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`) as Json;
    const message = `a value is nested too deeply (allowed: ${limits.conditionDepth} levels)`;
    for (const nested of [lists, objects]) {
      expect(() => convert(nested(limits.conditionDepth))).not.toThrow();
      expect(() => convert(nested(limits.conditionDepth + 1))).toThrow(message);
      expect(evaluateCondition('a == 1', { a: nested(limits.conditionDepth + 1) })).toEqual({
        ok: false,
        message: `The condition cannot be evaluated (${message}): a == 1`,
      });
    }
    // The depth of a value that was converted before counts as well.
    const inner = lists(limits.conditionDepth);
    expect(() => convert(inner)).not.toThrow();
    expect(() => convert([inner])).toThrow(message);
  });
});
