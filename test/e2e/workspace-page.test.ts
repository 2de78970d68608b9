/** docs/workspace.md: its examples, run in order by a shell on a real system with the demo model. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { withSnapshot } from '../../container-runner/test/support/python-snapshot.ts';
import { freePort } from '../../cli/system/services.ts';
import { startSystem } from '../../cli/system/system.ts';
import type { System } from '../../cli/system/system.ts';
import { difference, PageShell, readExamples } from '../support/page-examples.ts';
import { lacks, PAGE_PROGRAMS } from '../support/programs.ts';

const examples = readExamples(readFileSync('docs/workspace.md', 'utf8'));
const folder = mkdtempSync(join(tmpdir(), 'cortex-workspace-page-'));
let system: System;
let shell: PageShell;

beforeAll(async () => {
  const [stateDir, work] = [join(folder, 'state'), join(folder, 'work')];
  for (const each of [stateDir, work]) mkdirSync(each);
  system = await startSystem({
    port: await freePort(),
    runnerPort: await freePort(),
    stateDir: withSnapshot(stateDir),
    vars: { LLM_PROVIDER: 'demo' },
    ownRunner: true,
    progress: () => undefined,
  });
  shell = new PageShell(system.url, work);
});

afterAll(async () => {
  await system?.stop();
  rmSync(folder, { recursive: true, force: true });
});

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
