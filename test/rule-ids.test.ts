/** docs/testing.md explains the rule ids of the tests. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const TABLE = /^\| letter \|[^]*?\n\n/m.exec(readFileSync('docs/testing.md', 'utf8'))?.[0] ?? '';
const ROWS = [...TABLE.matchAll(/^\| ([A-Z](?:, [A-Z])*) \| (.+?) \|/gm)].map(([, letters = '', subject = '']) => ({
  letters: letters.split(', '),
  subject,
}));

const files = ['test', 'container-runner/test'].flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.test\.tsx?$/.test(name))
    .map((name) => join(folder, name)),
);
const ids = new Set(
  files.flatMap((file) => [...readFileSync(file, 'utf8').matchAll(/['"`]\[([A-Z]\d+)\]/g)].map(([, id = '']) => id)),
);

test('every letter of a rule id has a row in the table', () => {
  const letters = ROWS.flatMap((row) => row.letters);
  expect(letters.length).toBeGreaterThan(10);
  expect(ids.size).toBeGreaterThan(100);
  expect([...ids].filter((id) => !letters.includes(id.slice(0, 1)))).toEqual([]);
});

test.each(['E', 'K', 'U'])('the row of %s explains each of its ids', (letter) => {
  const { subject = '' } = ROWS.find((row) => row.letters.includes(letter)) ?? {};
  const explained = [...subject.matchAll(/\(([A-Z]\d+)\)/g)].map(([, id]) => id);
  expect(explained).toEqual([...ids].filter((id) => id.startsWith(letter)).toSorted());
});
