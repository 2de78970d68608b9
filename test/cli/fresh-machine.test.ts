/** A machine that has Node, Git and a shell, and nothing else. `npm run test:long` runs all of `npm test` there. */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { PACKAGE_ROOT } from '../../cli/project/folders.ts';
import { onBareMachine } from '../support/bare-machine.ts';
import { lacks } from '../support/programs.ts';

/** Files that start programs themselves. */
function starting(folder: string): string[] {
  return readdirSync(join(PACKAGE_ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.test.ts'))
    .map((path) => join(folder, path))
    .filter((path) => readFileSync(join(PACKAGE_ROOT, path), 'utf8').includes("'node:child_process'"));
}

test.skipIf(lacks('bwrap'))(
  'the files of `npm test` that start programs pass there',
  { timeout: 900_000 },
  async () => {
    const files = [...starting('test'), ...starting('container-runner/test')];
    expect(files.length).toBeGreaterThan(5);
    const { status, output } = await onBareMachine(['npm', 'test', '--', '--project', 'node', ...files]);
    expect({ status, output: output.slice(-8_000) }).toMatchObject({ status: 0 });
    expect(output).toMatch(/\d{2,} passed, 0 failed, 0 skipped/);
  },
);
