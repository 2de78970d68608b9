import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { dispatched } from './dispatched.ts';
import { folderOfFile } from './scene.ts';

const folder = folderOfFile();

function script(name: string, text: string): string {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
}

const good = script('good.yml', 'replies: [{ text: hello }]\n');

test.each([
  [['scripted-llm'], 2, 'usage: cortex scripted-llm'],
  [['scripted-llm', 'nowhere.yml'], 2, 'nowhere.yml: no such file'],
  [['plan', 'nowhere.xml'], 2, 'nowhere.xml: no such file'],
  [['scripted-llm', good, '--port', '65536'], 2, '--port "65536" is not a valid port'],
  [['scripted-llm', good, '--port', 'some'], 2, '--port "some" is not a valid port'],
  [['scripted-llm', script('empty.yml', '')], 1, 'at replies'],
  [['scripted-llm', script('field.yml', 'replies: [{ texd: hello }]\n')], 1, 'at replies[0]'],
  [['scripted-llm', script('fault.yml', 'replies: [{ fault: fire }]\n')], 1, 'expected one of stall, cut, close'],
])('[K4] cortex %j exits with %i and a message', async (given, code, said) => {
  const { err, code: exit } = await dispatched(given, { PORT: '1' });
  expect(err).toContain(said);
  expect(exit).toBe(code);
});

test.each([
  ['cli/main', ['prompt', 'nobody'], 1, 'unknown agent "nobody" (known: '],
  ['scripts/chaos', ['0'], 2, 'usage: npm run test:chaos'],
  ['scripts/simulation', ['1', '2147483648'], 2, 'usage: npm run test:simulation'],
  ['scripts/simulation', ['nowhere.json'], 2, 'nowhere.json is not a JSON file that can be read'],
])('[K4] the program %s %j exits with %i and a message, without a stack trace', (program, given, code, said) => {
  const { status, stderr } = spawnSync(process.execPath, [`${program}.ts`, ...given], { encoding: 'utf8' });
  expect(stderr).toContain(said);
  expect(stderr).not.toMatch(/^\s+at .*\(/m);
  expect(status).toBe(code);
});
