/** docs/memory.md: its examples, run in order by a shell on a real system with the demo model; and settings of such a system. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RunResult } from '../../src/view/result.ts';
import { difference, PageShell, readExamples } from '../support/page-examples.ts';
import { lacks, PAGE_PROGRAMS } from '../support/programs.ts';
import { sharedNamespace, sharedPart } from '../support/shared.ts';

// The section about the conversation has no commands. Manifests are none either; those of the page are uploaded by a command.
const [, section = ''] = readFileSync('docs/memory.md', 'utf8').split('## Facts about the user');
const page = section.replaceAll(/^```yaml\n[\s\S]*?^```$/gm, '');
const examples = readExamples(page);
const folder = mkdtempSync(join(tmpdir(), 'cortex-page-'));
let shell: PageShell;

beforeAll(async () => {
  shell = new PageShell(await sharedPart('system'), folder);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

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
  const { url, authorization } = await sharedNamespace();
  const said = async (text: string): Promise<unknown> => {
    const program = `<action name="echo" id="a">${JSON.stringify({ text })}</action><response final="true">$a</response>`;
    const answer = await fetch(`${url}/execute/direct`, {
      method: 'POST',
      headers: authorization,
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
