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
  ['scripted-llm', [], 2, 'usage: npm run scripted-llm'],
  ['scripted-llm', ['nowhere.yml'], 1, 'nowhere.yml: ENOENT'],
  ['scripted-llm', [good, '--nope'], 2, "Unknown option '--nope'"],
  ['scripted-llm', [good, '--port', '65536'], 2, '--port "65536" is not a valid port'],
  ['scripted-llm', [good, '--port', 'some'], 2, '--port "some" is not a valid port'],
  ['scripted-llm', [script('empty.yml', '')], 1, 'at replies'],
  ['scripted-llm', [script('field.yml', 'replies: [{ texd: hello }]\n')], 1, 'at replies[0]'],
  ['scripted-llm', [script('fault.yml', 'replies: [{ fault: fire }]\n')], 1, 'expected one of stall, cut, close'],
  ['prompt', ['nobody'], 1, 'unknown agent "nobody" (known: '],
  ['prompt', ['assistant', 'more'], 2, 'usage: npm run prompt'],
  ['prompt', ['--wrong'], 2, 'usage: npm run prompt'],
  ['chaos', ['many'], 2, 'usage: npm run test:chaos'],
  ['chaos', ['0'], 2, 'usage: npm run test:chaos'],
  ['simulation', ['0'], 2, 'usage: npm run test:simulation'],
  ['simulation', ['1', 'x'], 2, 'usage: npm run test:simulation'],
  ['simulation', ['1', '2147483648'], 2, 'usage: npm run test:simulation'],
  ['simulation', ['1', '2', '3'], 2, 'usage: npm run test:simulation'],
  ['simulation', ['nowhere.json'], 2, 'nowhere.json is not a JSON file that can be read'],
])('%s %j exits with %i and a message, without a stack trace', (command, given, code, said) => {
  const { status, stderr } = spawnSync(process.execPath, [`scripts/${command}.ts`, ...given], { encoding: 'utf8' });
  expect(stderr).toContain(said);
  expect(stderr).not.toMatch(/^\s+at .*\(/m);
  expect(status).toBe(code);
});
