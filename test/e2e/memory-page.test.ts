/** docs/memory.md: its examples, run in order by a shell on a real system with the demo model. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../cli/system/services.ts';
import { startSystem } from '../../cli/system/system.ts';
import type { System } from '../../cli/system/system.ts';
import { difference, PageShell, readExamples } from '../support/page-examples.ts';

// The section about the conversation has no commands. Manifests are none either; those of the page are uploaded by a command.
const [, section = ''] = readFileSync('docs/memory.md', 'utf8').split('## Facts about the user');
const page = section.replaceAll(/^```yaml\n[\s\S]*?^```$/gm, '');
const examples = readExamples(page);
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

test('[C10] docs/memory.md has examples', () => {
  expect(examples.length).toBeGreaterThanOrEqual(3);
});

// In order: later examples use what earlier ones wrote.
test.each(examples)('[C10] docs/memory.md: the example in line $line', async ({ commands, expected }) => {
  expect(difference(expected, await shell.run(commands))).toBeNull();
});
