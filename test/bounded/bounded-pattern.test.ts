import { describe, expect, test } from 'vitest';
import { compileBounded } from '../../src/bounded/bounded-pattern.ts';
import { limits } from '../../src/domain/limits.ts';
import { WorkMeter } from '../../src/domain/work.ts';

const compile = (source: string) => compileBounded(source, new WorkMeter(limits.schemaSteps));

const extent = (source: string): [number, number, string | null] | string => {
  const found = compile(source);
  return found.ok ? [found.pattern.least, found.pattern.most, found.pattern.required] : found.reason;
};

describe('[C9] patterns with a greatest match', () => {
  test.each<[string, [number, number, string | null]]>([
    ['a{2,5}', [2, 5, 'a']],
    [String.raw`\b\d{4}-\d{2}\b`, [7, 7, '-']],
    ['(?:ab|c)?d', [1, 3, 'd']],
    ['(?<year>[0-9]{4}){1,2}', [4, 8, null]],
    ['a-b|c-d', [3, 3, '-']],
    ['[^@]@', [2, 3, '@']],
    ['😀{1,2}', [2, 4, '😀']],
    [String.raw`\u{1F600}`, [2, 2, '😀']],
    [String.raw`\x41\cJ\t`, [3, 3, '\n']],
    [String.raw`\p{Lu}{2}`, [2, 4, null]],
    ['a{2}?b??', [2, 3, 'a']],
  ])('%s has the extent %j', (source, expected) => {
    expect(extent(source)).toEqual(expected);
  });

  test.each([
    ['a+', 'has no greatest length: write {1,64} instead of +'],
    ['a{3,}', 'has no greatest length: write {3,64} instead of {3,}'],
    ['^a', 'has the anchor ^, but text that is still arriving has no fixed start or end'],
    ['a$', 'has the anchor $, but text that is still arriving has no fixed start or end'],
    [String.raw`\b`, 'may match an empty text: at least one character must be required'],
    ['(?:a|)', 'may match an empty text: at least one character must be required'],
    ['(?:a{10}){60}', 'may match 600 characters (allowed: 512): lower the numbers in braces'],
    [String.raw`\uD83D`, String.raw`has half of a surrogate pair: write \u{…} with the whole code point`],
    ['(', 'is not a regular expression'],
    ['a'.repeat(241), 'has 241 characters (allowed: 240)'],
  ])('%s is refused', (source, reason) => {
    expect(extent(source)).toBe(reason);
  });

  test.each(['(?=a)b', String.raw`(a)\1`, '(?i:a)'])('%s is refused', (source) => {
    expect(typeof extent(source)).toBe('string');
  });

  test('the characters of a match are known', () => {
    const found = compile(String.raw`\b[a-c]{2}\.é[^\x00-\u{ffff}]{0,2}`);
    if (!found.ok) throw new Error(found.reason);
    const allowed = [...'abcd.é,ü😀'].filter((character) => found.pattern.allows(character.codePointAt(0) ?? 0));
    expect(allowed).toEqual(['a', 'b', 'c', '.', 'é', '😀']);
  });
});
