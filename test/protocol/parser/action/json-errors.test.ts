/** The position and the description of the first JSON error, which help models to correct it (P8). */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { limits } from '../../../../src/domain/limits.ts';
import { excerptAround, excerptOf, placeOf } from '../../../../src/protocol/parser/excerpt.ts';
import { findJsonError } from '../../../../src/protocol/parser/action/json-error.ts';

const open = (count: number): string => `the JSON ends too early: ${count} bracket(s) are still open`;
const next = (close: string): string =>
  `expected "," or "${close}"; inside a string, write a quote as \\" and a line break as \\n`;

describe('[P8] the first error', () => {
  const errors: readonly (readonly [text: string, index: number, reason: string])[] = [
    ['', 0, open(0)],
    ['  ', 2, open(0)],
    ['{', 1, open(1)],
    ['{"a": [', 7, open(2)],
    ['{"a"', 4, open(1)],
    ['{"a":', 5, open(1)],
    ['{"a":1', 6, open(1)],
    ['{"a":1,', 7, open(1)],
    ['[1] x', 4, 'unexpected text after the end of the JSON value'],
    ['{} {}', 3, 'unexpected text after the end of the JSON value'],
    ['{"a" 1}', 5, 'expected ":" after a key'],
    ['{"a":1 "b":2}', 7, next('}')],
    ['{"a":1]', 6, next('}')],
    ['[1 2]', 3, next(']')],
    ['["a"b"]', 4, next(']')],
    ['[1}', 2, next(']')],
    ['{"a":1,}', 7, 'unexpected comma before "}"'],
    ['{a:1}', 1, 'a key must be in double quotes'],
    ['{1:1}', 1, 'a key must be in double quotes'],
    ['{,}', 1, 'a key must be in double quotes'],
    ['[1,]', 3, 'unexpected comma before "]"'],
    ['[,1]', 1, 'expected a value'],
    ['{"a":}', 5, 'expected a value'],
    ['[01]', 2, 'invalid number'],
    ['[1a]', 2, 'invalid number'],
    ['[1.]', 2, 'invalid number'],
    ['[-]', 1, 'a string must be in double quotes'],
    ['[abc]', 1, 'a string must be in double quotes'],
    ["['a']", 1, 'expected a value'],
    ['[True]', 1, 'a string must be in double quotes'],
    ['[nulls]', 1, 'a string must be in double quotes'],
    ['[é]', 1, 'a string must be in double quotes'],
    ['["abc]', 1, 'this string is not closed'],
    ['["a\nb"]', 3, 'raw line break inside a string; write \\n'],
    ['["a\rb"]', 3, 'raw line break inside a string; write \\n'],
    ['["a\tb"]', 3, 'raw control character inside a string; write it as an escape'],
    ['["a\\x"]', 3, 'invalid JSON escape; write a backslash as \\\\'],
    ['["\\u12g4"]', 2, 'invalid JSON escape; write a backslash as \\\\'],
    ['["a\\n\\u00e9\\"b", tru]', 17, 'a string must be in double quotes'],
    ['["\\\\\\/\\b\\f\\n\\r\\t\\"", x]', 21, 'a string must be in double quotes'],
    ['[true, false, null, 1e5, -0.5E-3, x]', 34, 'a string must be in double quotes'],
    ['[[], {}, [ ], { }, x]', 19, 'a string must be in double quotes'],
    ['{"a":{"b":[1,2]},"c":3 "d"}', 23, next('}')],
  ];
  test.each(errors)('of %j is at %i: %s', (text, index, reason) => {
    expect(findJsonError(text)).toEqual({ index, reason });
  });

  test('is null exactly if JSON.parse accepts the text', () => {
    const texts = fc.oneof(
      fc.json(),
      fc
        .tuple(fc.json(), fc.nat(60), fc.constantFrom('"', ',', '}', ']', '[', '{', ':', '\\', '\n', '1', 'x', ' '))
        .map(([text, at, character]) => text.slice(0, at) + character + text.slice(at)),
      fc.tuple(fc.json(), fc.nat(60)).map(([text, at]) => text.slice(0, at) + text.slice(at + 1)),
    );
    fc.assert(
      fc.property(texts, (text) => {
        let valid = true;
        try {
          JSON.parse(text);
        } catch {
          valid = false;
        }
        expect(findJsonError(text) === null).toBe(valid);
      }),
      { numRuns: 400 },
    );
  });
});

describe('[P8] excerpts', () => {
  const most = limits.excerptChars;

  test('are cut to their maximum length, without splitting a character', () => {
    const exact = 'x'.repeat(most);
    expect(excerptOf(exact)).toBe(exact);
    expect(excerptOf(`${exact}y`)).toBe(exact);
    const paired = `${'x'.repeat(most - 1)}🎈`;
    expect(excerptOf(paired)).toBe('x'.repeat(most - 1));
    expect(excerptOf(`${'x'.repeat(most - 2)}🎈y`)).toBe(`${'x'.repeat(most - 2)}🎈`);
    expect(excerptOf(`${'x'.repeat(most - 1)}${'🎈'.slice(1)}y`)).toBe(`${'x'.repeat(most - 1)}${'🎈'.slice(1)}`);
    const last = `${'x'.repeat(most - 1)}\ue000y`;
    expect(excerptOf(last)).toBe(last.slice(0, most));
    expect(excerptOf(`${'x'.repeat(most - 1)}\ud800yy`)).toBe('x'.repeat(most - 1));
    expect(excerptOf(`${'x'.repeat(most - 1)}\udbffyy`)).toBe('x'.repeat(most - 1));
    // A short text stays unchanged, even with a lone surrogate at its end.
    expect(excerptOf('ab\ud83c')).toBe('ab\ud83c');
    expect(excerptOf(`${'x'.repeat(most - 1)}\ud83c`)).toBe(`${'x'.repeat(most - 1)}\ud83c`);
  });

  test('of a position begin half an excerpt before it, without leading white space', () => {
    const text = Array.from({ length: 100 }, (_, at) => String(at % 10)).join('');
    expect(excerptAround(text, 0)).toBe(text.slice(0, most));
    expect(excerptAround(text, most / 2)).toBe(text.slice(0, most));
    expect(excerptAround(text, 60)).toBe(text.slice(60 - most / 2, 60 + most / 2));
    expect(excerptAround(text, 1_000)).toBe(text.slice(100 - most / 2));
    expect(excerptAround('  \n abc', 1)).toBe('abc');
  });

  test.each([
    [0, 1, 1],
    [2, 1, 3],
    [3, 2, 1],
    [4, 3, 1],
    [6, 3, 3],
  ])('index %i is in line %i, column %i', (index, line, column) => {
    expect(placeOf('ab\n\ncd\n', index)).toEqual({ line, column });
  });
});
