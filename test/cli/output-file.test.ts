/** Files that a command writes its result to. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { UsageError } from '../../cli/command.ts';
import { requireWritable } from '../../cli/output-file.ts';
import { folderOfFile } from './scene.ts';

const folder = folderOfFile();

test('[O3] a file that can be written stays as it is, and a new one is not left behind', () => {
  writeFileSync(join(folder, 'old.json'), 'old');
  requireWritable('--out', join(folder, 'old.json'));
  requireWritable('--out', join(folder, 'new.json'));
  expect(readFileSync(join(folder, 'old.json'), 'utf8')).toBe('old');
  expect(readdirSync(folder)).toEqual(['old.json']);
});

test('[O3] a folder, and a file in a folder that does not exist, are refused', () => {
  expect(() => requireWritable('--out', folder)).toThrow(UsageError);
  expect(() => requireWritable('--out', join(folder, 'none', 'a.json'))).toThrow('a.json" cannot be written');
});
