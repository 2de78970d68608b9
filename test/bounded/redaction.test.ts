import { describe, expect, test } from 'vitest';
import { Redaction, redactionOf } from '../../src/bounded/redaction.ts';

const EMAIL = String.raw`\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,3}\b`;

describe('[C9] redaction of whole texts', () => {
  test('several lists count together, each pattern once', () => {
    const redaction = redactionOf([[EMAIL], undefined, ['secret', EMAIL]], () => undefined);
    expect(redaction?.sources).toEqual([EMAIL, 'secret']);
    expect(redaction?.text('a secret of joe@example.com!')).toBe('a [redacted] of [redacted]!');
  });

  test('without patterns there is no redaction', () => {
    expect(redactionOf([[], undefined], () => undefined)).toBeNull();
  });

  test('an invalid pattern is an error, not a pattern that finds nothing', () => {
    expect(() => new Redaction(['a+'], () => undefined)).toThrow('write {1,64} instead of +');
  });

  test('a text without a match is the identical text', () => {
    const text = 'nothing here';
    expect(new Redaction([EMAIL], () => undefined).text(text)).toBe(text);
  });

  test('the work is charged, and a text that needs too much of it is hidden as a whole', () => {
    let charged = 0;
    const redaction = new Redaction(['(?:a|b|ab|ba){1,60}[cd]'], (steps) => (charged += steps));
    const redact = redaction.texts(1_000_000);
    expect(redact(`${'ab'.repeat(20_000)}c`)).toBe('[redacted]');
    expect(redact('an abc after it')).toBe('[redacted]');
    expect(redact('x')).toBe('x');
    expect(charged).toBeGreaterThan(500_000);
    expect(redaction.text('an abc after it')).toBe('an [redacted] after it');
  });
});
