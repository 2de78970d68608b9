/** docs/memory.md: its examples, run in order by a shell on a real system with the demo model; and settings of such a system. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../cli/system/services.ts';
import { startSystem } from '../../cli/system/system.ts';
import type { System } from '../../cli/system/system.ts';
import type { RunResult } from '../../src/engine/run/run-result.ts';
import { difference, PageShell, readExamples } from '../support/page-examples.ts';
import { lacks, PAGE_PROGRAMS } from '../support/programs.ts';

// The section about the conversation has no commands. Manifests are none either; those of the page are uploaded by a command.
const [, section = ''] = readFileSync('docs/memory.md', 'utf8').split('## Facts about the user');
const page = section.replaceAll(/^```yaml\n[\s\S]*?^```$/gm, '');
const examples = readExamples(page);
const folder = mkdtempSync(join(tmpdir(), 'cortex-page-'));
/** With everything that a file of settings may change: quotation marks, line breaks, dollars and backslashes. */
const POLICIES = `- when: >-\n    action.name == "echo" && parameters.text.contains("it's $HOME")\n  do: deny\n  message: not $5\n`;
const REDACT = String.raw`["\\bsk-[A-Za-z0-9_-]{20,128}\\b"]`;
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
    vars: { LLM_PROVIDER: 'demo', POLICIES, REDACT },
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
test.skipIf(lacks(...PAGE_PROGRAMS)).each(examples)(
  '[C10] docs/memory.md: the example in line $line',
  async ({ commands, expected }) => {
    expect(difference(expected, await shell.run(commands))).toBeNull();
  },
);

test('[C9] [H8] the settings POLICIES and REDACT reach the Worker as they are written', async () => {
  const said = async (text: string): Promise<unknown> => {
    const program = `<action name="echo" id="a">${JSON.stringify({ text })}</action><response final="true">$a</response>`;
    const answer = await fetch(`${system.url}/execute/direct`, {
      method: 'POST',
      body: JSON.stringify({ protocol_text: program, stream: false }),
    });
    const { response, actions } = (await answer.json()) as RunResult;
    return { response, error: actions[0]?.error };
  };
  expect(await said('an sk-abcdefghijklmnopqrst key')).toEqual({
    response: expect.stringContaining('an [redacted] key'),
    error: null,
  });
  // `$$` is a literal `$`.
  expect(await said("it's $$HOME")).toMatchObject({
    error: { code: 'policy_denied', message: expect.stringMatching(/\(deployment, rule 1\): not \$5$/) },
  });
});
