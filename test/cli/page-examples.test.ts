/** The runner of the examples in docs/conversations.md. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { difference, PageShell, readExamples } from '../support/page-examples.ts';
import { lacks, PAGE_PROGRAMS } from '../support/programs.ts';

const block = (form: string, text: string): string => `\`\`\`${form}\n${text}\n\`\`\`\n`;

test('examples are commands and their output', () => {
  const page = `# A\n${block('sh', 'A=1')}Then:\n\n${block('sh', 'echo $A')}${block('text', '1')}`;
  expect(readExamples(page)).toEqual([
    { line: 2, form: 'sh', commands: 'A=1', expected: null },
    { line: 7, form: 'sh', commands: 'echo $A', expected: { form: 'text', text: '1' } },
  ]);
});

test.each([
  ['a block of another kind', block('python', 'print(1)')],
  ['an output without commands', block('json', '{}')],
  ['an output in the next section', `${block('sh', 'ls')}\n## B\n${block('json', '{}')}`],
])('%s is refused', (_, page) => {
  expect(() => readExamples(page)).toThrow(/^line \d+: /);
});

test.each<[form: 'json' | 'text', expected: string, output: string]>([
  ['json', '{"id": "ses_…", "at": …, "ok": true}', '{"id":"ses_1","at":{"a":[1]},"ok":true}'],
  ['json', '{"list": [1, …], "b": {…}, …}', '{"list":[1,2,3],"b":{"x":1},"more":null}'],
  ['json', '{"a": 1}\n{"b": …}', '{"a":1}\n{"b":2}\n'],
  ['text', 'id: …\ndata: {"a.b"}', 'id: 7\ndata: {"a.b"}\n'],
  ['text', 'first\n…\nlast', 'first\n1\n2\n3\nlast\n'],
])('%s %j accepts %j', (form, text, output) => {
  expect(difference({ form, text }, output)).toBeNull();
});

test.each<[form: 'json' | 'text', expected: string, output: string]>([
  ['json', '{"id": "ses_…"}', '{"id":"run_1"}'],
  ['json', '{"a": 1}', '{"a":1,"b":2}'],
  ['json', '[1]', '[1,2]'],
  ['json', '{"a": 1}', '{"a":1}\n{"a":1}'],
  ['text', 'a…c', 'a\nc'],
  ['text', 'first\n…\nlast', 'first\n1\nlast\n2'],
  ['text', 'a.c', 'abc'],
])('%s %j does not accept %j', (form, text, output) => {
  expect(difference({ form, text }, output)).not.toBeNull();
});

test('commands without an output print nothing', () => {
  expect(difference(null, '')).toBeNull();
  expect(difference(null, 'x')).toBe('prints x');
});

test.skipIf(lacks(...PAGE_PROGRAMS))('variables carry over, and a command that fails is an error', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'cortex-shell-'));
  try {
    const shell = new PageShell('http://127.0.0.1:1', folder);
    expect(await shell.run(`WORDS="a 'b' \\$c"`)).toBe('');
    expect(await shell.run('echo "$WORDS http://127.0.0.1:8787/x"')).toBe("a 'b' $c http://127.0.0.1:1/x\n");
    await expect(shell.run('false | cat')).rejects.toThrow('exit with 1');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
