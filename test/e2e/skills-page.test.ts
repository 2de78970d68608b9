/** docs/skills.md: its examples, run in order by a shell on a real system with the demo model. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../cli/system/services.ts';
import { startSystem } from '../../cli/system/system.ts';
import type { System } from '../../cli/system/system.ts';
import { difference, PageShell, readExamples } from '../support/page-examples.ts';
import { lacks, PAGE_PROGRAMS } from '../support/programs.ts';

const examples = readExamples(readFileSync('docs/skills.md', 'utf8'));
const folder = mkdtempSync(join(tmpdir(), 'cortex-page-'));
let system: System;
let shell: PageShell;

beforeAll(async () => {
  const stateDir = join(folder, 'state');
  const work = join(folder, 'work');
  for (const each of [stateDir, work]) mkdirSync(each);
  system = await startSystem({
    port: await freePort(),
    runnerPort: await freePort(),
    stateDir,
    vars: { LLM_PROVIDER: 'demo' },
    ownRunner: false,
    progress: () => undefined,
  });
  shell = new PageShell(system.url, work);
});

afterAll(async () => {
  await system?.stop();
  rmSync(folder, { recursive: true, force: true });
});

test('[C8] docs/skills.md has examples', () => {
  expect(examples).toHaveLength(4);
});

// In order: later examples use the files of earlier ones.
test.skipIf(lacks(...PAGE_PROGRAMS)).each(examples)(
  '[C8] docs/skills.md: the example in line $line',
  async ({ commands, expected }) => {
    expect(difference(expected, await shell.run(commands))).toBeNull();
  },
);
