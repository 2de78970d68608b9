/** Checks docs/protocol.md: its examples give the documented events, and its tables list every code. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { lines, parse } from './parser/parser-kit.ts';

const ROOT = join(import.meta.dirname, '../..');
const page = readFileSync(join(ROOT, 'docs/protocol.md'), 'utf8');
const EXAMPLE = /^(```|~~~)xml\n([\s\S]*?)^\1\n\1events\n([\s\S]*?)^\1$/gm;
const examples = [...page.matchAll(EXAMPLE)].map(([, , text = '', events = '']) => ({
  text,
  events: events.trimEnd().split('\n'),
}));

/** The members of a union of string literals in a source file. */
function codesOf(file: string, type: string): string[] {
  const source = readFileSync(join(ROOT, file), 'utf8');
  const union = new RegExp(`type ${type} =([^;]*);`).exec(source)?.[1] ?? '';
  return [...union.matchAll(/'(\w+)'/g)].map(([, code = '']) => code);
}

describe('docs/protocol.md', () => {
  test('has examples', () => {
    expect(examples.length).toBeGreaterThan(10);
  });
  test.each(examples.map(({ text, events }) => [text.split('\n')[0] ?? '', text, events] as const))(
    'example: %s',
    (_title, text, events) => {
      expect(lines(parse(text))).toEqual(events);
    },
  );
  test.each([
    ['Warnings', 'src/domain/protocol-event.ts', 'WarningCode'],
    ['Rejections', 'src/domain/action.ts', 'RejectionCode'],
  ])('%s has a row for every code, and no other', (heading, file, type) => {
    const section = page.split(`## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';
    const rows = [...section.matchAll(/^\| `(\w+)` \|/gm)].map(([, code]) => code);
    expect(rows.toSorted()).toEqual(codesOf(file, type).toSorted());
  });
});
