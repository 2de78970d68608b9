/** Files that a command line names. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readInput } from '../../cli/input-file.ts';
import { folderOfFile } from './scene.ts';

const folder = folderOfFile();

test('a byte order mark at the beginning is not part of the text', () => {
  const file = join(folder, 'report.json');
  writeFileSync(file, '\u{feff}{"version": 1}\u{feff}');
  expect(readInput(file)).toBe('{"version": 1}\u{feff}');
});
