/** What `npm run chat` prints of branches and messages (C4). */
import { expect, test } from 'vitest';
import { branchesOf } from '../../cli/chat/branches.ts';
import type { RunEntry } from '../../cli/chat/branches.ts';
import { messageIn } from '../../cli/chat/commands.ts';
import { short } from '../../cli/chat/exchange.ts';

const run = (id: string, parent: string | null, of?: string): RunEntry => ({
  run_id: id,
  parent_run: parent,
  ...(of === undefined ? {} : { retry_of: of }),
});

/** `start..end`, what the first run is a version of, and how many runs follow it. */
function described(runs: readonly RunEntry[], head: string): unknown[] {
  return branchesOf(runs, head).map(({ start, end, versionOf, later }) => [
    `${start.run_id}..${end}`,
    versionOf,
    later,
  ]);
}

test.each<[string, readonly RunEntry[], string, unknown[]]>([
  ['no message', [], '', []],
  ['one branch', [run('1', null), run('2', '1')], '2', [['1..2', null, 1]]],
  [
    'a retry in the middle',
    [run('1', null), run('2', '1'), run('3', '2'), run('4', '1', '2')],
    '4',
    [
      ['2..3', null, 1],
      ['4..4', '2', 0],
    ],
  ],
  [
    'an action that runs again is no version',
    [run('1', null), run('2', '1', '1'), run('3', '1')],
    '3',
    [
      ['2..2', null, 0],
      ['3..3', null, 0],
    ],
  ],
  [
    'the head is a run that others follow',
    [run('1', null), run('2', '1')],
    '1',
    [
      ['1..1', null, 0],
      ['2..2', null, 0],
    ],
  ],
  ['earlier runs are not in the list', [run('8', '7'), run('9', '8')], '9', [['8..9', null, 1]]],
])('[C4] each branch begins where it differs from the others: %s', (_, runs, head, expected) => {
  expect(described(runs, head)).toEqual(expected);
});

test.each([
  ['**`6 * 7` with the\n calculator:**\n42', '6 * 7 with the calculator: 42'],
  ['# Title\n> quoted\n```js\na_b * c\n```', 'Title quoted a_b * c'],
  ['see [the page](https://a.example/b)', 'see the page'],
  ['x'.repeat(400), `${'x'.repeat(300)}…`],
  ['a\u001b[31mb', 'a\\u{1b}[31mb'],
])('%j is printed in one line without the signs of Markdown', (text, line) => {
  expect(short(text)).toBe(line);
});

test.each([
  [' /tmp is a folder', '/tmp is a folder'],
  ['  indented', '  indented'],
  ['hello', 'hello'],
])('the line %j is the message %j', (line, message) => {
  expect(messageIn(line)).toBe(message);
});
