import { describe, expect, test } from 'vitest';
import { checkAnswer } from '../../../cli/fluency/score/check-answer.ts';
import type { Expectation } from '../../../cli/fluency/tasks/dataset.ts';

describe('[O4] an answer', () => {
  test.each<[string, Expectation, string]>([
    ['the value in a sentence', { contains: [417] }, 'There are 417 lamps.'],
    ['at the end of a sentence', { contains: [417, 34.7] }, 'There are 417. By 34.7.'],
    ['with marks between thousands', { contains: [1296, 560883] }, '1,296 chairs for 560 883 crowns'],
    ['a list with commas', { contains: [71, 112, 9] }, '71,112,9'],
    ['another minus sign', { contains: [-13.4] }, '−13.4 °C'],
    ['a range', { contains: [11] }, '5-11'],
    ['a unit right after a number', { contains: [187, 20861] }, '187min, 20861kWh'],
    ['dots between thousands', { contains: [99663] }, '99.663 crowns'],
    ['a binary fraction', { contains: [34.7] }, 'By 34.699999999999996.'],
    ['values after their names', { labelled: { lamp: 417, chair: 1296 } }, 'Chairs: 1,296. Lamps: 417.'],
    ['values before their names', { labelled: { lamp: 417, chair: 1296 } }, '417 lamps and 1296 chairs'],
    ['one value after its name, one before it', { labelled: { lamp: 417, chair: 1296 } }, 'Lamp: 417, and 1296 chairs'],
    ['names, then values', { labelled: { lamp: 417, chair: 1296 } }, '| chair | lamp |\n| 1296 | 417 |'],
    ['values without names', { labelled: { lamp: 417, chair: 1296 } }, '417 and 1296'],
    [
      'names before the labelled values',
      { labelled: { lamp: 417, chair: 1296 } },
      'For lamp and chair: lamp 417, chair 1296',
    ],
    ['several values for a name', { labelled: { north: [1, 2], south: [3, 4] } }, 'South: 3 and 4. North: 1, 2.'],
    ['values in order', { contains: [1, 2], ordered: true }, '1, 2'],
    ['in another case', { contains: ['Ostrava Quay'] }, 'OSTRAVA QUAY'],
    ['JSON', { json: { a: 1, b: [{ c: 'x' }] } }, '{"a": 1, "b": [{"c": "x", "more": true}], "d": null}'],
    ['JSON in a fence', { json: { a: 1 } }, 'Here:\n```json\n{"a": 1}\n```'],
    ['without what it must not have', { contains: [3215], lacks: [3196] }, '[3215, 3229]'],
  ])('accepts %s', (_, expected, answer) => {
    expect(checkAnswer(expected, answer)).toBeNull();
  });

  test.each<[string, Expectation, string, string]>([
    ['a part of a number', { contains: [417] }, 'There are 4170, 1417 or 417.5.', 'lacks 417'],
    ['a part of a word', { contains: ['VLG'] }, 'VLGX', 'lacks VLG'],
    ['one of two values', { contains: [83, 1874] }, 'It costs 1874.', 'lacks 83'],
    ['a sign that is too much', { contains: [13.4] }, '-13.4', 'lacks 13.4'],
    ['a range in place of a negative number', { contains: [-11] }, '5-11', 'lacks -11'],
    ['thousands in place of ones', { contains: [417] }, '417k', 'lacks 417'],
    ['other decimals', { contains: [99, 663] }, '99.663', 'lacks 99, 663'],
    ['swapped values', { labelled: { lamp: 417, chair: 1296 } }, 'lamp 1296, chair 417', 'belong to other names'],
    ['swapped columns', { labelled: { lamp: 417, chair: 1296 } }, '|lamp|chair|\n|1296|417|', 'other names'],
    ['swapped values without names', { labelled: { lamp: 417, chair: 1296 } }, '1296 and 417', 'other names'],
    ['swapped values of a name', { labelled: { north: [1, 2], south: 3 } }, 'North 2, 1; south 3', 'other names'],
    [
      'swapped values after a list of names',
      { labelled: { lamp: 417, chair: 1296 } },
      'For lamp and chair: lamp 1296, chair 417',
      'other names',
    ],
    ['another order', { contains: [1, 2], ordered: true }, '2, 1', 'in another order'],
    ['a missing sign', { contains: [-13.4] }, '13.4', 'lacks -13.4'],
    ['a reference without a value', { contains: [417] }, '$a.count', 'lacks 417'],
    ['too much', { contains: [1], lacks: [2] }, '1 and 2', 'must not have 2'],
    ['text in place of JSON', { json: { a: 1 } }, 'a is 1', 'is not JSON'],
    ['other values', { json: { a: 1, b: [1, 2] } }, '{"a": 1, "b": [1]}', 'has other values'],
    ['a missing member', { json: { a: 1 } }, '{}', 'has other values'],
    ['nothing', { contains: [1] }, '', 'lacks 1'],
  ])('refuses %s', (_, expected, answer, reason) => {
    expect(checkAnswer(expected, answer)).toContain(reason);
  });
});
