import { expect, test } from 'vitest';
import { parseRedact } from '../../../src/catalog/read/redact-setting.ts';
import { EngineError } from '../../../src/domain/errors.ts';

test.each([
  [undefined, []],
  [' ', []],
  [String.raw`["\\bsk-[A-Za-z0-9]{20,64}", "a{2}"]`, [String.raw`\bsk-[A-Za-z0-9]{20,64}`, 'a{2}']],
  ["- '\\d{16}'\n- abc", [String.raw`\d{16}`, 'abc']],
  ["['\\d{16}']", [String.raw`\d{16}`]],
  ['[]', []],
])('[C9] REDACT=%j', (text, patterns) => {
  expect(parseRedact(text)).toEqual(patterns);
  expect(parseRedact(text)).toEqual(patterns);
});

test.each([
  ['["a+"]', 'pattern 1, "a+", has no greatest length: write {1,64} instead of +'],
  ['["a", 5]', 'pattern 2 is not a text'],
  ['abc', 'it is not a list'],
  ['{a: b}', 'it is not a list'],
  ['["a"', 'REDACT must be a list'],
  [JSON.stringify(Array.from({ length: 17 }, (_, at) => `a${at}`)), 'it has 17 patterns (allowed: 16)'],
  ['[]\nother: [a]', 'REDACT must be a list'],
])('[C9] REDACT=%s is refused', (text, message) => {
  expect(() => parseRedact(text)).toThrow(EngineError);
  expect(() => parseRedact(text)).toThrow(message);
});
