import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterAll, expect, test, vi } from 'vitest';
import { loadManifests } from '../../src/catalog/load.ts';
import { limits } from '../../src/domain/limits.ts';
import { checkManifests, readManifestFiles } from '../../cli/project/manifest-files.ts';

const folder = mkdtempSync(join(tmpdir(), 'manifests-'));
afterAll(() => rmSync(folder, { recursive: true }));

const validate = (...targets: string[]) =>
  spawnSync(process.execPath, ['cli/main.ts', 'validate', ...targets], { encoding: 'utf8' });

test('[M1] validate reports every problem and exits with 1', () => {
  mkdirSync(join(folder, 'tools'));
  writeFileSync(
    join(folder, 'tools', 'bad.yaml'),
    'kind: Tool\nversion: 1\nname: bad\nsummary: s\nimplementation: {type: builtin, entrypoint: ech}\n',
  );
  writeFileSync(join(folder, 'empty.yaml'), '');
  writeFileSync(join(folder, 'picture.bin'), Uint8Array.from([1, 0, 2]));
  const { status, stderr, stdout } = validate(folder);
  expect(status).toBe(1);
  expect(stderr.split('\n').filter(Boolean)).toEqual([
    `error    ${folder}/tools/bad.yaml:5:45: implementation.entrypoint: "ech" is not allowed (allowed: echo, calculator, web_fetch, web_extract, json_query). Did you mean echo?`,
    `note     ${folder}/empty.yaml:1:1: the file is empty; skipped`,
  ]);
  expect(stdout).toBe(`${folder}: nothing loaded, 1 error, 0 warnings, 1 file skipped\n`);
});

test('[M1] a start prints the first warnings of a folder, and the command for the others', () => {
  const many = join(folder, 'many');
  const rest = 'version: 1\nsummary: s\nimplementation: {type: builtin, entrypoint: echo}\n';
  const documents = Array.from({ length: 20 }, (_, index) => `kind: Tool\nname: many_${index}\n${rest}`);
  // the second of two folders with the same names
  for (const one of ['a', 'b']) {
    mkdirSync(join(many, one), { recursive: true });
    writeFileSync(join(many, one, 'tool.yaml'), documents.join('---\n'));
  }
  const print = vi.spyOn(console, 'error').mockReturnValue();
  const { warnings } = checkManifests(['manifests', many]);
  const lines = print.mock.calls.map(([line]: unknown[]) => line);
  print.mockRestore();
  expect(warnings).toHaveLength(20);
  expect(lines).toHaveLength(13);
  expect(lines.at(-1)).toBe(`warning  … and 8 more; \`npm run validate -- ${many}\` prints all`);
  rmSync(many, { recursive: true });
});

test('[M1] validate reports binary files, and files that are not manifests', () => {
  const odd = join(folder, 'odd');
  mkdirSync(odd);
  const write = (name: string, content: string | Uint8Array): void => writeFileSync(join(odd, name), content);
  write('binary.yaml', Uint8Array.from([0x6b, 0, 0x69]));
  write('huge.yaml', `kind: Tool\n${'#'.repeat(limits.manifestBytes)}`);
  write('values.yaml', '#'.repeat(limits.manifestBytes + 1));
  write('latin.yaml', Uint8Array.from([...Buffer.from('kind: Tool\nname: '), 0xe9]));
  write('picture.bin', Uint8Array.from([1, 0, 2]));
  write('notes.txt', 'kind: Agent\n');
  const { status, stderr } = validate(odd);
  expect(status).toBe(1);
  expect(stderr.split('\n').filter(Boolean)).toEqual([
    `error    ${odd}/huge.yaml:1:1: the file has 1048587 bytes (maximum 1048576)`,
    `error    ${odd}/latin.yaml:1:1: the file is not UTF-8 text`,
    `note     ${odd}/binary.yaml:1:1: the file is not UTF-8 text; skipped`,
    `note     ${odd}/values.yaml:1:1: the file has 1048577 bytes (maximum 1048576); skipped`,
  ]);
  const file = validate(join(odd, 'notes.txt'));
  expect(file.stderr).toBe(
    `error    ${odd}/notes.txt:1:1: is not a manifest (expected YAML, or Markdown with "kind" in its front matter)\n`,
  );
  expect(file.status).toBe(1);
  rmSync(odd, { recursive: true });
});

test('[M1] a manifest with random damage gives definitions or problems, never an exception', () => {
  const files = readManifestFiles('manifests');
  const junk = fc.constantFrom(
    '',
    ':',
    '- ',
    '[',
    '}',
    '"',
    "'",
    '\n',
    '\t',
    '&a ',
    '*a',
    '!!set ',
    '<<: ',
    '---\n',
    '? ',
    '| ',
    '\u0000',
    '😀',
    '1e999',
  );
  fc.assert(
    fc.property(
      fc.nat(files.length - 1),
      fc.array(fc.tuple(fc.nat(5_000), fc.nat(30), junk), { maxLength: 5 }),
      (index, cuts) => {
        const mangled = files.map((file, position) => {
          if (position !== index) return file;
          const text = cuts.reduce((before, [at, length, piece]) => {
            const from = at % (before.length + 1);
            return before.slice(0, from) + piece + before.slice(from + length);
          }, file.text);
          return { path: file.path, text };
        });
        const { problems, warnings } = loadManifests(mangled);
        for (const { line, column, message } of [...problems, ...warnings]) {
          expect(line).toBeGreaterThan(0);
          expect(column).toBeGreaterThan(0);
          expect(message).not.toBe('');
        }
      },
    ),
    { numRuns: 60 },
  );
});
