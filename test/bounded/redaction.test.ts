import { describe, expect, test } from 'vitest';
import { redactJson } from '../../src/bounded/redact-json.ts';
import { Redaction, redactionOf } from '../../src/bounded/redaction.ts';
import { limits } from '../../src/domain/limits.ts';

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

  test('a text that is JSON stays JSON, and its escapes hide nothing', () => {
    const redact = new Redaction([EMAIL, String.raw`\b\d(?:[ -]?\d){12,18}\b`], () => undefined);
    const text = JSON.stringify({
      to: 'Hi\njoe@x.org',
      'a@b.cc': ['Card:\n4111111111111111'],
      inner: '{"at":"joe\\u0040x.org"}',
    });
    expect(JSON.parse(redact.text(text))).toEqual({
      to: 'Hi\n[redacted]',
      '[redacted]': ['Card:\n[redacted]'],
      inner: '{"at":"[redacted]"}',
    });
    expect(redact.text('{\n  "n": 4111111111111111\n}')).toBe('{\n  "n": "[redacted]"\n}');
    expect(redact.text(String.raw`{"a": "joe@x.org", "b": 1}`)).toBe('{"a": "[redacted]", "b": 1}');
    const same = String.raw`{"a":   "x\n1"}`;
    expect(redact.text(same)).toBe(same);
    expect(redact.text(String.raw`{not JSON\njoe@x.org`)).toBe(String.raw`{not JSON\n[redacted]`);
  });

  test('names of members that would be equal are numbered', () => {
    const redact = new Redaction([EMAIL], () => undefined).texts();
    const value = { 'a@b.cc': 1, 'c@d.ee': 2, '[redacted 2]': 3, x: 4, 'e@f.gg': 5 };
    expect(redactJson(value, redact)).toEqual({
      '[redacted]': 1,
      '[redacted 3]': 2,
      '[redacted 2]': 3,
      x: 4,
      '[redacted 4]': 5,
    });
  });

  test('the beginning of a match in front of a cut is hidden', () => {
    const redact = new Redaction([String.raw`\b\d(?:[ -]?\d){12,18}\b`], () => undefined).texts();
    expect(redact('to 4111111111[cut: 20000 characters]')).toBe('to [redacted][cut: 20000 characters]');
    for (const mark of [
      '[cut: the output had 9 bytes; the first 4 characters are kept]',
      '[cut after 4 of 9 characters]',
    ]) {
      expect(redact(`to 4111111111\n${mark}`)).toBe(`to [redacted]\n${mark}`);
    }
    expect(redact('to 4111111111 …')).toBe('to 4111111111 …');
    expect(redact('got "nnn… 411111111111…" (a, b, …)', 'message')).toBe('got "nnn… [redacted]…" (a, b, …)');
    const name = `${'n'.repeat(limits.excerptChars - 10)}-411111111`;
    expect(redact(`No tool is called "${name}" (known: a)`, 'message')).not.toContain('4111');
    expect(redact(`No tool is called "n-411111111" (known: a)`, 'message')).toContain('n-411111111');
    const around = `1111 x${'y'.repeat(limits.excerptChars - 10)}4111`;
    expect(redact(around, 'excerpt')).toBe(`[redacted]x${'y'.repeat(limits.excerptChars - 10)}[redacted]`);
    expect(redact('x 4111', 'excerpt')).toBe('x 4111');
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
