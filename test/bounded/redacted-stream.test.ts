import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compileBounded } from '../../src/bounded/bounded-pattern.ts';
import type { BoundedPattern } from '../../src/bounded/bounded-pattern.ts';
import type { Meter } from '../../src/bounded/pattern.ts';
import { REDACTED, RedactedStream } from '../../src/bounded/redacted-stream.ts';
import { limits } from '../../src/domain/limits.ts';
import { WorkMeter } from '../../src/domain/work.ts';

const PATTERNS = [
  'ab{1,3}a?',
  String.raw`\b[a-c.]{1,4}@[a-c]{1,3}\b`,
  String.raw`\b\d(?:[ -]?\d){3,7}\b`,
  'b{2,80}c',
  '[ab]{70}',
  String.raw`\Ba.`,
  'a|ab|aba',
  '(?:a|b){1,3}?c',
  String.raw`😀{1,2}|[\u{1F600}-\u{1F64F}]a`,
  '.{3}@',
  String.raw`\p{Lu}{2}\s?[^a]`,
  ' {2}',
  '[^ ]{2}é',
  String.raw`\\[a-u]{2}`,
  String.raw`\b[\w.]{2}@n`,
  String.raw`\n{1,2}a`,
];
const LETTERS = [...'aabbc@. 12-😀éÉ_\n\r\\\\nu"', '\ud83d', '\ude00'];

const compiled = (source: string): BoundedPattern => {
  const found = compileBounded(source, new WorkMeter(limits.schemaSteps));
  if (!found.ok) throw new Error(`${source} ${found.reason}`);
  return found.pattern;
};

/** The text with line breaks in place of escapes, and the positions within escapes. */
function maskOf(text: string): { readonly masked: string; readonly inside: ReadonlySet<number> } {
  const inside = new Set<number>();
  const masked = text.replaceAll(/\\+(?:u[0-9a-fA-F]{0,4}|[nrtbf"/])?/g, (escape, at: number) => {
    for (let index = 1; index < escape.length; index += 1) inside.add(at + index);
    return `\n${'\r'.repeat(escape.length - 1)}`;
  });
  return { masked, inside };
}

/** The definition, with the engine of JavaScript: marks in place of the union of overlapping matches. */
function expected(sources: readonly string[], text: string): string {
  const { masked, inside } = maskOf(text);
  const found = [text, ...(masked === text ? [] : [masked])]
    .flatMap((form) => sources.flatMap((source) => [...form.matchAll(new RegExp(source, 'gu'))]))
    .map((match) => {
      let [start, end] = [match.index, match.index + match[0].length];
      while (start < end && inside.has(start)) start += 1;
      while (start < end && inside.has(end)) end -= 1;
      return { start, end };
    })
    .filter(({ start, end }) => start < end)
    .toSorted((one, other) => one.start - other.start);
  let shown = '';
  let covered = 0;
  for (const { start, end } of found) {
    if (start >= covered) shown += text.slice(covered, start) + REDACTED;
    covered = Math.max(covered, end);
  }
  return shown + text.slice(covered);
}

function streamed(
  sources: readonly string[],
  pieces: readonly string[],
  meter: Meter = new WorkMeter(Infinity),
): string[] {
  const stream = new RedactedStream(sources.map(compiled), meter);
  return [...pieces.map((piece) => stream.feed(piece)), stream.end()];
}

const texts = fc
  .array(
    fc.oneof(
      { weight: 8, arbitrary: fc.constantFrom(...LETTERS) },
      {
        weight: 1,
        arbitrary: fc.constantFrom(
          'abab@abc',
          '4111 1111',
          'b'.repeat(90),
          'ab'.repeat(60),
          '\\n1111',
          String.raw`\u00ab@a`,
        ),
      },
    ),
    { maxLength: 60 },
  )
  .map((parts) => parts.join(''));
const lists = fc.uniqueArray(fc.constantFrom(...PATTERNS), { minLength: 1, maxLength: 5 });

function cut(text: string, sizes: readonly number[]): string[] {
  const pieces: string[] = [];
  for (let at = 0, next = 0; at < text.length; next += 1) {
    const size = sizes[next % sizes.length] ?? 1;
    pieces.push(text.slice(at, at + size));
    at += size;
  }
  return pieces;
}

describe('[C9] redaction of text in pieces', () => {
  test('any division of a text gives what the whole text gives', () => {
    fc.assert(
      fc.property(lists, texts, fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1 }), (sources, text, sizes) => {
        const whole = expected(sources, text);
        expect(streamed(sources, [text]).join('')).toBe(whole);
        expect(streamed(sources, cut(text, sizes)).join('')).toBe(whole);
        expect(streamed(sources, cut(text, [1])).join('')).toBe(whole);
      }),
      { numRuns: 1_500 },
    );
  });

  test('only characters that may become a part of a match wait, and a bounded number of them', () => {
    fc.assert(
      fc.property(lists, texts, (sources, text) => {
        const patterns = sources.map(compiled);
        const stream = new RedactedStream(patterns, new WorkMeter(Infinity));
        let so = '';
        for (const unit of text) {
          stream.feed(unit);
          so += unit;
          const from = so.length - stream.heldChars;
          const held = so.slice(from);
          const forms = [held, maskOf(so).masked.slice(from)];
          const isRun = ({ allows }: BoundedPattern): boolean =>
            forms.some((form) => [...form].every((character) => allows(character.codePointAt(0) ?? 0)));
          // A high surrogate waits for its other half.
          expect(held === '' || patterns.some(isRun) || /[\ud800-\udbff]$/.test(held)).toBe(true);
          const most = Math.max(...patterns.map((pattern) => pattern.most));
          expect(held.length).toBeLessThanOrEqual(most + Math.max(most, 64) + 2);
        }
      }),
    );
  });

  test('an escape of JSON is no part of a word, and no mark replaces a part of one', () => {
    const card = String.raw`\b\d(?:[ -]?\d){12,18}\b`;
    const email = String.raw`\b[\w.%+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}\b`;
    for (const escape of [
      String.raw`\n`,
      String.raw`\t`,
      String.raw`\u000a`,
      String.raw`\\n`,
      String.raw`\\\\t`,
      '\\"',
    ]) {
      const text = `{"a":"x${escape}4111111111111111${escape}joe@x.org${escape}"}`;
      const safe = `{"a":"x${escape}[redacted]${escape}[redacted]${escape}"}`;
      expect(streamed([card, email], [text]).join('')).toBe(safe);
      expect(streamed([card, email], [...text]).join('')).toBe(safe);
    }
    const path = String.raw`C:\new\table\users\list`;
    expect(streamed([card, email], [path]).join('')).toBe(path);
  });

  test('a run of matches costs what is searched for each, not the rest of its text', () => {
    let spent = 0;
    const email = String.raw`\b[\w.%+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}\b`;
    streamed([email], ['"a@b.c"'.repeat(1_400)], { charge: (steps = 1) => void (spent += steps) });
    expect(spent).toBeLessThan(limits.redactSteps / 2);
  });

  test('what waits when the text is cut becomes a mark, for any division, and what follows is another text', () => {
    const cutAfter = (pieces: readonly string[]): string => {
      const stream = new RedactedStream([compiled(String.raw`\b\d(?:[ -]?\d){12,18}\b`)], new WorkMeter(Infinity));
      const before = pieces.map((piece) => stream.feed(piece)).join('');
      return before + stream.cut() + stream.feed('11111 [cut]') + stream.end();
    };
    for (const text of ['to 41111111', String.raw`to\n41111111`, 'to 4111111111111 41111111']) {
      const shown = text.replace(/\d.*/, '[redacted]11111 [cut]');
      expect(cutAfter([text])).toBe(shown);
      expect(cutAfter([...text])).toBe(shown);
    }
    expect(cutAfter(['to '])).toBe('to 11111 [cut]');
  });

  test('text with spaces streams word by word', () => {
    const pieces = ['Write to', ' joe', '@exam', 'ple.com', ' soon', ', please', '.'];
    const email = String.raw`\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,3}\b`;
    expect(streamed([email], pieces)).toEqual(['Write ', 'to ', '', '', '[redacted] ', 'soon, ', '', 'please.']);
  });

  test('matches that overlap get one mark, matches that touch get two', () => {
    expect(streamed(['abc', 'cde', 'xy', 'z'], ['abcdefxyz']).join('')).toBe('[redacted]f[redacted][redacted]');
  });

  test.each([
    ['a run without a match', '[a-z]{1,200}@', 'a'],
    ['a run of matches', '[a-z]{1,200}', 'a'],
    ['a run of short matches', 'a{2}', 'a'],
    ['words', '[a-z]{1,200}@', 'abcdefg '],
    ['a run with the required character', '[a-z@]{1,200}!?@0', '@'],
  ])('%s in pieces of one character costs a fixed amount for each character', (_name, source, part) => {
    const cost = (chars: number): number => {
      let spent = 0;
      const text = part.repeat(Math.ceil(chars / part.length)).slice(0, chars);
      streamed([source], [...text], { charge: (steps = 1) => void (spent += steps) });
      return spent;
    };
    expect(cost(40_000)).toBeLessThan(cost(10_000) * 4.2);
  });
});
