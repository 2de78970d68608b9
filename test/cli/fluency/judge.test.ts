import { describe, expect, test } from 'vitest';
import { judge } from '../../../cli/fluency/score/judge.ts';
import type { Expectation } from '../../../cli/fluency/tasks/dataset.ts';

describe('[O4] the judge', () => {
  test.each<[string, Expectation, string]>([
    ['the value in a sentence', { contains: [417] }, 'There are 417 lamps.'],
    ['at the end of a sentence', { contains: [417, 34.7] }, 'There are 417. By 34.7.'],
    ['with marks between thousands', { contains: [1296, 560883] }, '1,296 chairs for 560 883 crowns'],
    ['a list with commas', { contains: [71, 112, 9] }, '71,112,9'],
    ['a list with blanks', { contains: [38, 112] }, 'the values 38 112'],
    ['another minus sign', { contains: [-13.4] }, '−13.4 °C'],
    ['with a unit', { contains: [187, '2029-03-26'] }, '187 minutes, until **2029-03-26**'],
    ['in another case', { contains: ['Ostrava Quay'] }, 'OSTRAVA QUAY'],
    ['JSON', { json: { a: 1, b: [{ c: 'x' }] } }, '{"a": 1, "b": [{"c": "x", "more": true}], "d": null}'],
    ['JSON in a fence', { json: { a: 1 } }, 'Here:\n```json\n{"a": 1}\n```'],
    ['without what it must not have', { contains: [3215], lacks: [3196] }, '[3215, 3229]'],
  ])('accepts %s', (_, expected, answer) => {
    expect(judge(expected, answer)).toBeNull();
  });

  test.each<[string, Expectation, string, string]>([
    ['a part of a number', { contains: [417] }, 'There are 4170, 1417 or 417.5.', 'lacks 417'],
    ['a part of a word', { contains: ['VLG'] }, 'VLGX', 'lacks VLG'],
    ['one of two values', { contains: [83, 1874] }, 'It costs 1874.', 'lacks 83'],
    ['a missing sign', { contains: [-13.4] }, '13.4', 'lacks -13.4'],
    ['a reference without a value', { contains: [417] }, '$a.count', 'lacks 417'],
    ['too much', { contains: [1], lacks: [2] }, '1 and 2', 'must not have 2'],
    ['text in place of JSON', { json: { a: 1 } }, 'a is 1', 'is not JSON'],
    ['other values', { json: { a: 1, b: [1, 2] } }, '{"a": 1, "b": [1]}', 'has other values'],
    ['a missing member', { json: { a: 1 } }, '{}', 'has other values'],
    ['nothing', { contains: [1] }, '', 'lacks 1'],
  ])('refuses %s', (_, expected, answer, reason) => {
    expect(judge(expected, answer)).toContain(reason);
  });
});
