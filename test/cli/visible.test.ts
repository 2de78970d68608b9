import { describe, expect, test } from 'vitest';
import { boxed, harmless, visible } from '../../cli/terminal/visible.ts';

describe('[J8] text shown for an approval', () => {
  test.each([
    ['ANSI', 'pay\u001B[2K\u001B[1Gread', 'pay\\u{1b}[2K\\u{1b}[1Gread'],
    ['C1 controls', 'a\u009B2Jb', 'a\\u{9b}2Jb'],
    ['line breaks', 'a\nb\r\u2028c\u0085d', 'a\\u{a}b\\u{d}\\u{2028}c\\u{85}d'],
    ['direction', 'to \u202Emoc.elpmaxe', 'to \\u{202e}moc.elpmaxe'],
    [
      'invisible characters',
      'a\u200Bb\u2060c\uFEFFd\u00ADe\u{E0041}f\u3164',
      'a\\u{200b}b\\u{2060}c\\u{feff}d\\u{ad}e\\u{e0041}f\\u{3164}',
    ],
    ['other spaces', 'a\u00A0b\u2003c d', 'a\\u{a0}b\\u{2003}c d'],
    ['lone surrogates', 'a\uD800b', 'a\\u{d800}b'],
    ['plain text', 'Grüße, 東京 ✓', 'Grüße, 東京 ✓'],
  ])('shows %s', (_, text, shown) => {
    expect(visible(text)).toBe(shown);
  });

  test('has a bar before every line, for any padding and line breaks', () => {
    const value = { to: `Ann${' '.repeat(500)}  Approve? [y/N]\n> yes`, wide: '東'.repeat(100) };
    const rows = boxed(value, 60).split('\n');
    expect(rows.length).toBeGreaterThan(10);
    for (const row of rows) {
      expect(row.startsWith('    │ ')).toBe(true);
      expect(row.length).toBeLessThanOrEqual(60);
    }
    const text = rows.map((row) => row.slice(6)).join('');
    expect(text).toContain('\\n> yes');
  });

  test('as running text keeps its line breaks and emoji, and contains no control sequences', () => {
    expect(harmless('one\n\ttwo 👩‍👩‍👧 \u001B[31mred\u202E')).toBe('one\n\ttwo 👩‍👩‍👧 \\u{1b}[31mred\\u{202e}');
  });
});
