import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';

const folder = mkdtempSync(join(tmpdir(), 'cortex-arguments-'));
afterAll(() => rmSync(folder, { recursive: true }));

function script(name: string, text: string): string {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
}

const good = script('good.yml', 'replies: [{ text: hello }]\n');

test.each([
  ['cli/main', ['scripted-llm'], 2, 'usage: cortex scripted-llm'],
  ['cli/main', ['scripted-llm', 'nowhere.yml'], 2, 'nowhere.yml: no such file'],
  ['cli/main', ['plan', 'nowhere.xml'], 2, 'nowhere.xml: no such file'],
  ['cli/main', ['eval', 'nowhere.yaml'], 2, 'nowhere.yaml: no such file'],
  ['cli/main', ['scripted-llm', good, '--nope'], 2, "Unknown option '--nope'"],
  ['cli/main', ['scripted-llm', good, '--port', '65536'], 2, '--port "65536" is not a valid port'],
  ['cli/main', ['scripted-llm', good, '--port', 'some'], 2, '--port "some" is not a valid port'],
  ['cli/main', ['scripted-llm', script('empty.yml', '')], 1, 'at replies'],
  ['cli/main', ['scripted-llm', script('field.yml', 'replies: [{ texd: hello }]\n')], 1, 'at replies[0]'],
  [
    'cli/main',
    ['scripted-llm', script('fault.yml', 'replies: [{ fault: fire }]\n')],
    1,
    'expected one of stall, cut, close',
  ],
  ['cli/main', ['prompt', 'nobody'], 1, 'unknown agent "nobody" (known: '],
  ['cli/main', ['prompt', 'assistant', 'more'], 2, 'usage: cortex prompt'],
  ['cli/main', ['prompt', '--wrong'], 2, 'usage: cortex prompt'],
  ['scripts/chaos', ['many'], 2, 'usage: npm run test:chaos'],
  ['scripts/chaos', ['0'], 2, 'usage: npm run test:chaos'],
  ['scripts/simulation', ['0'], 2, 'usage: npm run test:simulation'],
  ['scripts/simulation', ['1', 'x'], 2, 'usage: npm run test:simulation'],
  ['scripts/simulation', ['1', '2147483648'], 2, 'usage: npm run test:simulation'],
  ['scripts/simulation', ['1', '2', '3'], 2, 'usage: npm run test:simulation'],
  ['scripts/simulation', ['nowhere.json'], 2, 'nowhere.json is not a JSON file that can be read'],
])('%s %j exits with %i and a message, without a stack trace', (command, given, code, said) => {
  const { status, stderr } = spawnSync(process.execPath, [`${command}.ts`, ...given], { encoding: 'utf8' });
  expect(stderr).toContain(said);
  expect(stderr).not.toMatch(/^\s+at .*\(/m);
  expect(status).toBe(code);
});
