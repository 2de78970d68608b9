import { describe, expect, test } from 'vitest';

import { limits } from '../../../src/domain/limits.ts';
import { parseOutput } from '../../../src/executors/runner/job-output.ts';

describe('[R3] JSON output is parsed', () => {
  test.each([
    ['{"a":[1,null,true]}\n', { a: [1, null, true] }],
    ['[1, 2]', [1, 2]],
    ['"text"\n', 'text'],
    ['null', null],
    ['true\r\n', true],
    ['42\n', 42],
    ['-0.5', -0.5],
    ['  {"a": 1}  \n', { a: 1 }],
    ['{"1.0":1.0,"e":1e3}', { '1.0': 1, e: 1000 }],
  ])('%j', (stdout, value) => {
    expect(parseOutput(stdout)).toEqual(value);
  });
});

describe('[R3] any other output is text without its last line break', () => {
  test.each([
    ['', ''],
    ['\n', ''],
    ['hello\n', 'hello'],
    ['hello\r\n', 'hello'],
    ['two\nlines\n\n', 'two\nlines\n'],
    ['  indented', '  indented'],
    ['{"a":1}\n{"a":2}\n', '{"a":1}\n{"a":2}'],
    ["{'a': 1}", "{'a': 1}"],
    ['NaN', 'NaN'],
  ])('%j', (stdout, text) => {
    expect(parseOutput(stdout)).toBe(text);
  });
});

describe('[R3] a number that would lose digits as JSON stays text', () => {
  test.each([
    '1606938044258990275541962092341162602522202993782792835301376',
    '12345678901234567890',
    '1.0',
    '1e3',
    '1e+20',
    '-0',
    '0.10',
    '1e400',
  ])('%s', (text) => {
    expect(parseOutput(`${text}\n`)).toBe(text);
  });

  test('in an object the same holds, for values that would change', () => {
    const stdout = '{"big": 12345678901234567890, "list": [9007199254740993, 1.50, 0.1, -0.0, 1E2, 1e400]}';
    expect(parseOutput(stdout)).toEqual({
      big: '12345678901234567890',
      list: ['9007199254740993', 1.5, 0.1, -0, 100, '1e400'],
    });
  });

  test('a float printed by Python stays the same float', () => {
    for (const value of [0.1 + 0.2, 1 / 3, 5e-324, 1.7976931348623157e308, 123456.789e-20]) {
      expect(parseOutput(JSON.stringify({ value }))).toEqual({ value });
    }
  });
});

test('[R3] output nested too deeply stays text', () => {
  const deep = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
  expect(typeof parseOutput(deep(limits.jsonDepth))).toBe('object');
  expect(parseOutput(deep(limits.jsonDepth + 1))).toBe(deep(limits.jsonDepth + 1));
  expect(typeof parseOutput(deep(500_000))).toBe('string');
});

test('[R3] brackets inside strings do not count as nesting', () => {
  const text = JSON.stringify({ a: '['.repeat(1_000), b: '\\"[' });
  expect(parseOutput(text)).toEqual(JSON.parse(text));
});

test('[R3] names of Object.prototype members are ordinary keys', () => {
  const value = parseOutput('{"__proto__": {"polluted": 1}}');
  expect(Object.keys(value as object)).toEqual(['__proto__']);
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
});
