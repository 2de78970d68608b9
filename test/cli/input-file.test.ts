/** Files that a command line names. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { readInput } from '../../cli/input-file.ts';

const folder = mkdtempSync(join(tmpdir(), 'cortex-input-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('a byte order mark at the beginning is not part of the text', () => {
  const file = join(folder, 'report.json');
  writeFileSync(file, '\u{feff}{"version": 1}\u{feff}');
  expect(readInput(file)).toBe('{"version": 1}\u{feff}');
});
