/** docs/cli.md: its examples, run in order by a shell with the program `cortex` and a real system. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { LIGHT_SANDBOX } from '../../container-runner/test/support/levels.ts';
import { withSnapshot } from '../../container-runner/test/support/python-snapshot.ts';
import { freePort } from '../../cli/system/services.ts';
import { startSystem } from '../../cli/system/system.ts';
import type { System } from '../../cli/system/system.ts';
import { installCortex } from '../support/cortex.ts';
import { difference, PageShell, readExamples } from '../support/page-examples.ts';
import { lacks, PAGE_PROGRAMS } from '../support/programs.ts';

const examples = readExamples(readFileSync('docs/cli.md', 'utf8'));
const folder = mkdtempSync(join(tmpdir(), 'cortex-cli-page-'));
let system: System;
let shell: PageShell;

beforeAll(async () => {
  const [stateDir, work, bin] = [join(folder, 'state'), join(folder, 'work'), join(folder, 'bin')];
  for (const each of [stateDir, work]) mkdirSync(each);
  system = await startSystem({
    port: await freePort(),
    runnerPort: await freePort(),
    stateDir: withSnapshot(stateDir),
    vars: { LLM_PROVIDER: 'demo' },
    ownRunner: true,
    runnerEnv: LIGHT_SANDBOX,
    progress: () => undefined,
  });
  installCortex(bin);
  shell = new PageShell(system.url, work);
  // A port without a system, where no address is given.
  if (!lacks(...PAGE_PROGRAMS)) await shell.run(`PATH="${bin}:$PATH"\nPORT=${await freePort()}`);
});

afterAll(async () => {
  await system?.stop();
  rmSync(folder, { recursive: true, force: true });
});

test('docs/cli.md has examples', () => {
  expect(examples.length).toBeGreaterThan(0);
});

// In order: later examples use the variables and files of earlier ones.
test.skipIf(lacks(...PAGE_PROGRAMS)).each(examples)(
  '[K4] docs/cli.md: the example in line $line',
  async ({ commands, expected }) => {
    expect(difference(expected, await shell.run(commands))).toBeNull();
  },
);
