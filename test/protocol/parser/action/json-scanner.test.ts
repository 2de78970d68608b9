/** Whether a tag in the body of an action is inside a JSON string (P7). */
import { describe, expect, test } from 'vitest';
import { JsonScanner } from '../../../../src/protocol/parser/action/json-scanner.ts';

interface Seen {
  readonly inString: boolean;
  readonly malformed: boolean;
  readonly hidesTag: boolean;
  readonly depth: number;
}

/** The scanner's state after a text, which must be the same for every cut. */
function scanned(text: string): Seen {
  const views = [[text], [...text], [text.slice(0, text.length / 2), text.slice(text.length / 2)]].map((chunks) => {
    const scanner = new JsonScanner();
    for (const chunk of chunks) scanner.scan(chunk);
    const { inString, malformed, hidesTag, maxDepth } = scanner;
    return { inString, malformed, hidesTag, depth: maxDepth };
  });
  const [first, ...others] = views as [Seen, ...Seen[]];
  for (const other of others) expect(other).toEqual(first);
  return first;
}

describe('[P7] a tag after the body', () => {
  test.each([
    '{"a',
    '{"a\\"',
    '{"a\\',
    '{"a": "x',
    "{'a': 'x",
    '{"it\'s',
    '[1, "',
    '{a: "x',
    '{"a": tru, "',
    '{ // note\n "',
    '{ /* a ** b */ "',
    '{ /**/ "',
    '// note\n{"',
    '/* a */ {"',
    '```json\n{"',
    '```\n["',
    '```{"',
    '{"a": {"b": []}, "c',
    '{"a": 1.5e+3, "',
    '{"a": -x$.y, "',
    '{"a": é, "',
    '{"a" /* b */ : "',
    '{"a": 1 // x\n, "',
  ])('%j is inside a string', (text) => {
    expect(scanned(text)).toMatchObject({ inString: true, hidesTag: true, malformed: false });
  });

  test.each([
    '',
    '  \n\t\r',
    '{',
    '{"a"',
    '{"a": 1}',
    '{"a": "x"}',
    "{'a\": 1'}",
    '{"a\\\\"',
    '[1, 2] // "',
    '[1] /* "',
    '{ // "',
    '{ /* "',
    '{ /* * "',
    '{ /',
    '```json "',
    '``',
    '{"a": tru',
    '{} ',
    '{}\n```\n',
  ])('%j is outside a string, and the body is well formed so far', (text) => {
    expect(scanned(text)).toMatchObject({ inString: false, hidesTag: false, malformed: false });
  });

  test.each([
    'x"',
    '"',
    '} "',
    '{} {"',
    '{} x "',
    '] "',
    '{"a" "',
    '{"a": "x" "',
    '{"a": ;"',
    '{"a": (b) "',
    '{"a" ; "',
    '{ /x "',
    '`x "',
    '``json "',
    '{"a": 1 b "',
    '{}} "',
    '{"a": x ; "',
  ])('%j is outside a string, because the body is malformed', (text) => {
    expect(scanned(text)).toMatchObject({ inString: false, hidesTag: false, malformed: true });
  });

  test.each([
    ['{"a\n', false],
    ['{"a\n   ', false],
    ['{"a\nb', true],
    ['{"a\nb\n', false],
    ['{"a\nb\n  c', true],
    ['{"a\nb"', true],
    ['{"a\nb ', true],
    ['{"a\n b\t', true],
  ])('%j, with a raw line break in a string, is hidden only within its line: %s', (text, hides) => {
    expect(scanned(text)).toMatchObject({ inString: false, hidesTag: hides, malformed: true });
  });

  test.each([
    ['{}', 1],
    ['[[], {}]', 2],
    ['{"a": [{"b": []}], "c": {}}', 4],
    ['"{{{"', 0],
    ['{"{[": 1}', 1],
    ['', 0],
  ])('%j has a nesting depth of at most %i', (text, depth) => {
    expect(scanned(text).depth).toBe(depth);
  });
});

test('[P7] a reused scanner starts again, and a scanner that has given up hides nothing', () => {
  const scanner = new JsonScanner();
  expect(scanner.used).toBe(false);
  scanner.scan('[[{"a\nb');
  expect([scanner.used, scanner.hidesTag, scanner.maxDepth]).toEqual([true, true, 3]);
  scanner.reset();
  expect([scanner.used, scanner.hidesTag, scanner.malformed, scanner.maxDepth]).toEqual([false, false, false, 0]);
  scanner.scan('{"a');
  expect([scanner.inString, scanner.maxDepth]).toEqual([true, 1]);
  scanner.giveUp();
  expect([scanner.inString, scanner.hidesTag, scanner.malformed]).toEqual([false, false, true]);
  scanner.scan('{"');
  expect(scanner.inString).toBe(false);
  const unused = new JsonScanner();
  unused.giveUp();
  expect(unused.used).toBe(true);
  // A fence counts its backticks again.
  scanner.reset();
  scanner.scan('``');
  scanner.reset();
  scanner.scan('`x');
  expect(scanner.malformed).toBe(true);
});
