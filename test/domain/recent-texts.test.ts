/** What is derived from long texts is shared and bounded (Z3). */
import { describe, expect, test } from 'vitest';
import { derived } from '../../src/domain/derived.ts';
import { limits } from '../../src/domain/limits.ts';
import { RecentTexts } from '../../src/domain/recent-texts.ts';

const counted = () => {
  const derivedFrom: string[] = [];
  const texts = new RecentTexts((text) => {
    if (text.startsWith('bad')) throw new Error('unreadable');
    derivedFrom.push(text);
    return { text };
  });
  return { texts, derivedFrom };
};

describe('[Z3] recent texts', () => {
  test('equal texts give the same value', () => {
    const { texts, derivedFrom } = counted();
    const first = texts.of(['a', 'b'].join(''));
    expect(texts.of('ab')).toBe(first);
    expect(texts.of('other')).toEqual({ text: 'other' });
    expect(derivedFrom).toEqual(['ab', 'other']);
  });

  test('the longest unused is forgotten, by number', () => {
    const { texts, derivedFrom } = counted();
    texts.of('first');
    for (let n = 1; n < limits.recentTexts; n += 1) texts.of(`text ${n}`);
    texts.of('first');
    texts.of('one more');
    derivedFrom.length = 0;
    texts.of('first');
    texts.of('text 1');
    expect(derivedFrom).toEqual(['text 1']);
  });

  test('and by length; one that is too long is not kept at all', () => {
    const { texts, derivedFrom } = counted();
    const half = 'x'.repeat(limits.recentTextChars / 2);
    for (const text of [`${half}1`, `${half}2`, `${half}2`, `${half}1`]) texts.of(text);
    expect(derivedFrom.map((text) => text.at(-1))).toEqual(['1', '2', '1']);
    const long = half + half + half;
    texts.of('short');
    derivedFrom.length = 0;
    for (const text of [long, long, 'short']) texts.of(text);
    // And it removes nothing.
    expect(derivedFrom).toEqual([long, long]);
  });

  test('a text whose value cannot be derived takes no room', () => {
    const { texts } = counted();
    const first = texts.of('good');
    const bad = `bad${'x'.repeat(limits.recentTextChars / 2)}`;
    for (let n = 0; n < 4; n += 1) expect(() => texts.of(bad)).toThrow('unreadable');
    texts.of('another');
    expect(texts.of('good')).toBe(first);
  });
});

test('[Z3] a value is derived once from an object, also if it is empty', () => {
  let calls = 0;
  const nothing = derived((from: { readonly n: number }): undefined => {
    calls += from.n;
  });
  const one = { n: 1 };
  expect([nothing(one), nothing(one), nothing({ n: 1 })]).toEqual([undefined, undefined, undefined]);
  expect(calls).toBe(2);
});
