import { describe, expect, test } from 'vitest';
import { compilePattern } from '../../src/bounded/pattern.ts';
import { limits } from '../../src/domain/limits.ts';
import { WorkExceeded, WorkMeter } from '../../src/domain/work.ts';

const steps = (): WorkMeter => new WorkMeter(limits.schemaSteps);

function found(source: string, text: string, meter = steps()): boolean {
  const compiled = compilePattern(source, meter);
  if (!compiled.ok) throw new Error(compiled.reason);
  return compiled.pattern.test(text, meter);
}

const PATTERNS =
  String.raw`a$ ^a . .. ^.$ \s \S \w \W \d \D \b \B [\s] [^\s] [\S] [^\S] [\s\S] [^a] ^.*$ \p{L} \P{L} [\p{L}\d] [\b] \0 \v [^] [] \x41
  \u0041 \u{1F600} [\u0041-\u0043] \cJ \t (?:ab|a)b (?<n>a)+ a{2} a{2,} a{1,2}b ^a?b?$ a*?b \. \/ [.] [\]a] [\-a] \$ ^\d{3}-\d{4}$
  ^[^\s@]+@[^\s@]+\.[a-z]{2,}$ ^https?://`.split(/\s+/);
const TEXTS = [
  ...'ab\n\r\t\v\b\0 \u00a0\u2028\ufefféß😀_1-./]$AB',
  ...',ab,aab,aaa,a\n,\na,a b,555-1234,x@y.zz,http://x'.split(','),
];

describe('patterns in schemas', () => {
  test.each(PATTERNS)('%s gives the same result as ECMAScript', (source) => {
    for (const text of TEXTS) expect([text, found(source, text)]).toEqual([text, new RegExp(source, 'u').test(text)]);
  });

  test.each([
    ['^(a+)+$', `${'a'.repeat(20_000)}!`],
    ['^(\\w+\\s?)*$', `${'a'.repeat(20_000)}!`],
    ['(a|a)*b', 'a'.repeat(20_000)],
    ['(.*)(.*)(.*)(.*)(.*)[^a]$', 'a'.repeat(20_000)],
  ])('%s is matched in linear time', (source, text) => {
    expect(found(source, text)).toBe(false);
  });

  test.each([
    ['(', 'is not a regular expression'],
    ['(?i)a', 'is not a regular expression'],
    ['\\A', 'is not a regular expression'],
    ['(?=a)b', 'cannot be matched in linear time'],
    ['(?<=a)b', 'cannot be matched in linear time'],
    ['(a)\\1', 'cannot be matched in linear time'],
    ['a'.repeat(limits.patternChars + 1), `allowed: ${limits.patternChars}`],
    ['a{1001}', `allowed: ${limits.patternStates}`],
    ['((?:[a-z]{10}){10}x){20,}', `allowed: ${limits.patternStates}`],
    ['\\p{L}{500}[^\\]{]{600}', `allowed: ${limits.patternStates}`],
    ['a{0,99999999999999}', `allowed: ${limits.patternStates}`],
  ])('%s is refused', (source, reason) => {
    const compiled = compilePattern(source, steps());
    expect(compiled.ok ? '' : compiled.reason).toContain(reason);
  });

  test('the cost of text and pattern together is charged before they are matched', () => {
    const meter = steps();
    expect(() => found('^[ab]*a[ab]{300}[^ab]$', 'ab'.repeat(50_000), meter)).toThrow(WorkExceeded);
    expect(found('^[a-z]+$', 'a'.repeat(100_000))).toBe(true);
  });
});
