/** The text of a call's arguments: where it ends, and whether all of it came (P17). */
import { describe, expect, test } from 'vitest';
import { ArgumentsEndFinder, isTruncated, unwrapped } from '../../../src/protocol/native/call-arguments.ts';

describe('[P17] the arguments', () => {
  test.each([
    ['', ''],
    [' \n', ''],
    ['null', ''],
    [' null ', ''],
    ['{"a":1}', '{"a":1}'],
    [' {"a":1}\n', '{"a":1}'],
    ['"{\\"a\\":1}"', '{"a":1}'],
    [' " {\\"a\\":1} " ', '{"a":1}'],
    ['"null"', 'null'],
    ['"abc', '"abc'],
    ['"a" b', '"a" b'],
    ['7', '7'],
  ])('%j are read as %j', (text, source) => expect(unwrapped(text)).toBe(source));

  test.each([
    ['', false],
    ['x', false],
    ['{', true],
    ['{}', false],
    ['{"a":1', true],
    ['{"a":{}', true],
    ['{"a":"}', true],
    ['{"a":"}"}', false],
    ["{'a': 1}", false],
    ['{"a":1} x', true],
    ['// {', true],
    ['```json\n{"a":1}\n```', false],
    ['```json\n{"a":1', true],
  ])('[P15] %j are truncated: %s', (source, truncated) => expect(isTruncated(source)).toBe(truncated));

  test.each<[pieces: string[], ends: number[]]>([
    [['{}'], [2]],
    [
      ['{}', '{}'],
      [2, -1],
    ],
    [
      ['{', '}x'],
      [-1, 1],
    ],
    [
      ['{"a":{"b":1', '}', '} '],
      [-1, -1, 1],
    ],
    [
      ['{"\\', '"}', '"}'],
      [-1, -1, 2],
    ],
    [
      ['{"\\\\', '"}'],
      [-1, 2],
    ],
    [
      ['{"}', '"}'],
      [-1, 2],
    ],
    [[' } '], [2]],
  ])('the object in the pieces %j ends at %j', (pieces, ends) => {
    const finder = new ArgumentsEndFinder();
    expect(pieces.map((piece) => finder.scan(piece))).toEqual(ends);
  });
});
