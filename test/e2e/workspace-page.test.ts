/** docs/workspace.md: its examples, run in order by a shell on a real system with the demo model. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { difference, PageShell, readExamples } from '../support/page-examples.ts';
import { lacks, PAGE_PROGRAMS } from '../support/programs.ts';
import { sharedPart } from '../support/shared.ts';

const examples = readExamples(readFileSync('docs/workspace.md', 'utf8'));
const folder = mkdtempSync(join(tmpdir(), 'cortex-workspace-page-'));
let shell: PageShell;

beforeAll(async () => {
  shell = new PageShell(await sharedPart('system'), folder);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('docs/workspace.md has examples', () => {
  expect(examples.length).toBeGreaterThan(0);
});

// In order: later examples use the variables of earlier ones.
test.skipIf(lacks(...PAGE_PROGRAMS)).each(examples)(
  '[C7] docs/workspace.md: the example in line $line',
  async ({ commands, expected }) => {
    expect(difference(expected, await shell.run(commands))).toBeNull();
  },
);
