/** Lines of a text box (U4). */
import { expect, test } from 'vitest';
import { lineOf } from '../../../console/pages/text-lines.ts';

test.each([
  ['one\ntwo\nthree', 2, 'two'],
  ['one\ntwo\nthree', 3, 'three'],
  // An issue of an earlier text may be further down.
  ['one\ntwo\nthree', 9, ''],
  ['one\ntwo\n', 3, ''],
  ['', 1, ''],
])('[U4] of %j, line %i is %j', (text, line, expected) => {
  expect(lineOf(text, line)).toBe(expected);
});
