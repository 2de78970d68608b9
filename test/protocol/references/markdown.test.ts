/** Objects and lists in an answer (P13). */
import { describe, expect, test } from 'vitest';
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import { MarkdownPosition } from '../../../src/protocol/references/markdown-position.ts';
import { hasBlockForm, renderBlock } from '../../../src/protocol/references/markdown-value.ts';

const lines = (value: JsonObject | Json[], indent = ''): string[] => renderBlock(value, indent).text.split('\n');

describe('[P13] a value with a line of its own', () => {
  test('is a table if it is a list of flat objects; columns are the keys in order of appearance', () => {
    expect(
      lines([
        { id: 1, title: 'a|b' },
        { id: 2, open: true, title: null },
      ]),
    ).toEqual(['| id | title | open |', '| --- | --- | --- |', '| 1 | a\\|b | – |', '| 2 | – | true |']);
  });

  test.each<[string, string]>([
    ['two\nlines\r\nand more', 'two lines and more'],
    ['\\|', '\\\\\\|'],
    ['C:\\dir', 'C:\\dir'],
    ['a\\\\|b|c\\', 'a\\\\\\\\\\|b\\|c\\'],
  ])('the cell %j is %j', (text, cell) => {
    expect(lines([{ text }])[2]).toBe(`| ${cell} |`);
  });

  test('the time for a cell is proportional to its length', () => {
    const text = '\\'.repeat(1_000_000);
    expect(lines([{ text }])[2]).toBe(`| ${text} |`);
  });

  test.each<[string, JsonObject | Json[]]>([
    ['an object', { a: 1 }],
    ['a list of scalars', [1, 2]],
    ['a list with a nested object', [{ a: { b: 1 } }]],
    ['a list with a scalar', [{ a: 1 }, 2]],
    ['a list of empty objects', [{}]],
    ['more rows than a table may have', Array.from({ length: limits.tableRows + 1 }, (_, a) => ({ a }))],
    [
      'more columns than a table may have',
      [Object.fromEntries(Array.from({ length: limits.tableColumns + 1 }, (_, at) => [`c${at}`, at]))],
    ],
  ])('%s is JSON in a code block', (_name, value) => {
    const [open, ...rest] = lines(value);
    expect(open).toBe('```json');
    expect(rest.pop()).toBe('```');
    expect(JSON.parse(rest.join('\n'))).toEqual(value);
  });

  test('has the indentation of its line', () => {
    expect(lines({ a: 1 }, '  ')).toEqual(['```json', '  {', '    "a": 1', '  }', '  ```']);
  });

  test('a large value is not indented', () => {
    const value = { text: 'x'.repeat(limits.indentedJsonChars) };
    expect(lines(value)[1]).toBe(JSON.stringify(value));
  });

  test.each<[Json, boolean]>([
    [[], false],
    [{}, false],
    ['text', false],
    [null, false],
    [7, false],
    [[1], true],
    [{ a: 1 }, true],
  ])('%j has such a form: %s', (value, expected) => {
    expect(hasBlockForm(value)).toBe(expected);
  });
});

describe('[P13] the position in a text', () => {
  const at = (...pieces: string[]): MarkdownPosition => {
    const position = new MarkdownPosition();
    for (const piece of pieces) position.write(piece);
    return position;
  };

  test.each<[text: string, indent: string | null]>([
    ['', ''],
    ['a', null],
    ['a\n', ''],
    ['a\n   ', '   '],
    ['a\n    ', null],
    ['- ', null],
    ['```\n', null],
    ['```\nx\n```\n', ''],
    ['````\n```\n', null],
    ['~~~\n```\n', null],
    ['~~~\n~~~~\n', ''],
    ['```\n``` not closed\n', null],
    ['text ``` text\n', ''],
    ['```js', null],
    [`${'x'.repeat(50)}`, null],
    [`${' '.repeat(50)}`, null],
    [`${'x'.repeat(50)}\n`, ''],
  ])('after %j the line begins with %j, however the text is cut', (text, indent) => {
    expect(at(text).indent).toBe(indent);
    expect(at(...text).indent).toBe(indent);
  });

  test.each<[string, boolean]>([
    ['', true],
    ['a\n', false],
    ['a\n\n', true],
    ['a\n  \n', true],
    [`a\n${' '.repeat(50)}x\n`, false],
  ])('after %j the previous line is blank: %s', (text, expected) => {
    expect(at(text).isAfterBlank).toBe(expected);
    expect(at(...text).isAfterBlank).toBe(expected);
  });
});
