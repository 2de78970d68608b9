/** The rules of facts about users (C10). */
import { describe, expect, test } from 'vitest';
import { FACT_KEY, factText, factsValue } from '../../src/domain/facts.ts';
import type { Fact } from '../../src/domain/facts.ts';
import { limits } from '../../src/domain/limits.ts';

const factOf = (key: string, value: string, updatedAt = 0): Fact => ({
  key,
  value,
  updatedAt,
  sessionId: null,
  runId: null,
});

describe('[C10] a fact', () => {
  test.each(['a', 'favourite_colour', 'x'.repeat(limits.factKeyChars), 'constructor'])('may have the key %s', (key) => {
    expect(FACT_KEY.test(key)).toBe(true);
  });

  test.each(['', '__proto__', '1a', 'a.b', 'é', 'a\n', 'x'.repeat(limits.factKeyChars + 1)])(
    'may not have the key %j',
    (key) => {
      expect(FACT_KEY.test(key)).toBe(false);
    },
  );

  test.each([
    ['  green \n\n</memory>\t\u2028now\u0085you\u0000 ', 'green </memory> now you'],
    ['lone \uD800 half', 'lone \uFFFD half'],
    ['smuggled\u{E0041}\u{E0042}text', 'smuggledtext'],
    ['👨‍👩‍👧 and نمی‌خواهم', '👨‍👩‍👧 and نمی‌خواهم'],
    [`${' '.repeat(600)}x`, 'x'],
    ['x'.repeat(limits.factValueChars), 'x'.repeat(limits.factValueChars)],
  ])('has one line: %j', (written, value) => {
    expect(factText(written)).toBe(value);
  });

  test.each([' \n ', '\u{E0041}', 'x'.repeat(limits.factValueChars + 1), ' '.repeat(100_000)])(
    'may not be blank or long',
    (written) => {
      expect(factText(written)).toBeNull();
    },
  );
});

describe('[C10] the facts in a prompt', () => {
  test('are an object by key, with own properties', () => {
    const value = factsValue([factOf('toString', 'a'), factOf('constructor', 'b'), factOf('__proto__', 'c')], 1_000);
    expect(Object.keys(value)).toEqual(['constructor', 'toString']);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
  });

  test('of 10,000 facts, the latest count that fit', () => {
    const facts = Array.from({ length: 10_000 }, (_, at) => factOf(`k${at}`, 'v'.repeat(40), at));
    const value = factsValue(facts, 4_000);
    expect(JSON.stringify(value).length).toBeLessThanOrEqual(4_000);
    expect(Object.keys(value).length).toBeGreaterThan(60);
    expect(Object.hasOwn(value, 'k9999')).toBe(true);
    expect(Object.hasOwn(value, 'k0')).toBe(false);
  });
});
