/** The one reading of `.dev.vars` (K10): what wrangler reads, or an error. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { unstable_getVarsForDev as varsOfWrangler } from 'wrangler';
import { checkNames, parseDevVars, valuesOf } from '../../cli/system/dev-vars.ts';
import { settingsOf } from '../../cli/system/settings.ts';
import { folderOfFile } from './scene.ts';

const folder = folderOfFile();

function wranglerReads(bytes: string | Uint8Array): Record<string, unknown> {
  writeFileSync(join(folder, '.dev.vars'), bytes);
  const vars = varsOfWrangler(join(folder, 'wrangler.toml'), undefined, {}, undefined, true);
  return Object.fromEntries(Object.entries(vars).map(([name, value]) => [name, (value as { value: unknown }).value]));
}

test.each([
  '\uFEFFAPI_KEYS=a:admin:k\nTOOL_A=b',
  'API_KEYS=a:admin:k\r\nTOOL_A=b\r\n',
  '\uFEFF# comment\r\n\r\n  export  API_KEYS = a:admin:k  # why\r\nTOOL_A=\r\n',
  'A=1\rB=2\r',
  'A="x y"\nB=\'x # y\'\nC=`x "y" z`\nD="a\\nb"\nE=\'a\\nb\'\n',
  'A="one\ntwo"\nB=3',
  'A=\'{"a": "b"}\' # comment\nB=x#y\nC=a=b\nD=',
  'A="a \\" b"\nB=$A',
  'A = 1\nB.c-d=2',
])('[K10] .dev.vars has the values that wrangler reads: %j', (text) => {
  expect(valuesOf(text)).toEqual(wranglerReads(text));
});

test.each([
  ['A=1\nAPI_KEYS: a:admin:k', '.dev.vars:2: is not NAME=value'],
  ['A=1\n\na b=2', '.dev.vars:3: is not NAME=value'],
  ['=1', '.dev.vars:1: is not NAME=value'],
  ['A="1\nB=2', '.dev.vars:1: A has a quotation mark without its other one at the end'],
  ['A="1" secret', '.dev.vars:1: A has a quotation mark'],
  ['A="1\n2"\nB=\'x', '.dev.vars:3: B has a quotation mark'],
  ['API_KEYS=a:admin:k\nB=1\nAPI_KEYS=', '.dev.vars:3: API_KEYS is already set in line 1'],
])('[K10] what cannot be read of .dev.vars is an error with file and line: %j', (text, message) => {
  expect(() => valuesOf(text)).toThrow(message);
  expect(
    parseDevVars(text)
      .issues.map(({ message: one }) => one)
      .join(),
  ).not.toContain('secret');
});

test.each([
  ['UTF-16 with its mark', Buffer.from('\uFEFFAPI_KEYS=a:admin:k\n', 'utf16le')],
  ['UTF-16', Buffer.from('API_KEYS=a:admin:k\n', 'utf16le')],
  ['Latin-1', Buffer.from('TOOL_A=\xe9\n', 'latin1')],
])('[K10] a .dev.vars in %s is an error', (_name, bytes) => {
  writeFileSync(join(folder, '.dev.vars'), bytes);
  expect(() => settingsOf(folder, {})).toThrow('.dev.vars:1: is not UTF-8 text; save the file as UTF-8');
});

test('[K10] an unknown name in .dev.vars is an error with the nearest name; the environment may have any name', () => {
  expect(() => checkNames('TOOL_ANY=1\n\nAPI_KEY=a:admin:k\nLLM_BASEURL=x')).toThrow(
    '.dev.vars:3: unknown setting API_KEY (did you mean API_KEYS?)\n' +
      '.dev.vars:4: unknown setting LLM_BASEURL (did you mean LLM_BASE_URL?)',
  );
  expect(() => checkNames('STRIPE_KEY=1')).toThrow('unknown setting STRIPE_KEY (secrets of tools begin with TOOL_)');
  writeFileSync(join(folder, '.dev.vars'), 'RUNNER_SANDBX=wasm\n');
  expect(() => settingsOf(folder, {})).toThrow('.dev.vars:1: unknown setting RUNNER_SANDBX');
  writeFileSync(join(folder, '.dev.vars'), '');
  expect(settingsOf(folder, { API_KEY: 'x', EDITOR: 'vi' }).worker).toEqual({});
});
