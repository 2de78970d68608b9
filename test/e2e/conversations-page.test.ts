/** docs/conversations.md: its examples, run in order by a shell on a real system with the demo model. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { difference, PageShell, readExamples } from '../support/page-examples.ts';
import { lacks, PAGE_PROGRAMS } from '../support/programs.ts';
import { sharedPart, sharedPort } from '../support/shared.ts';

const examples = readExamples(readFileSync('docs/conversations.md', 'utf8'));
const folder = mkdtempSync(join(tmpdir(), 'cortex-page-'));
/** A site of the internet. */
const site = createServer((request, response) => {
  if (request.url === '/rfc/rfc9457.txt') response.writeHead(200, { 'content-type': 'text/plain' }).end(DOCUMENT);
  else response.writeHead(404).end();
});
const DOCUMENT = 'Problem Details for HTTP APIs\n';
let shell: PageShell;

beforeAll(async () => {
  const sitePort = await sharedPort();
  await new Promise<void>((resolve) => site.listen(sitePort, '127.0.0.1', resolve));
  const sites = { 'https://www.rfc-editor.org': `http://127.0.0.1:${sitePort}` };
  shell = new PageShell(await sharedPart('system'), folder, sites);
});

afterAll(() => {
  site.close();
  rmSync(folder, { recursive: true, force: true });
});

test('docs/conversations.md has examples', () => {
  expect(examples.length).toBeGreaterThan(0);
});

// In order: later examples use the variables of earlier ones.
test.skipIf(lacks(...PAGE_PROGRAMS)).each(examples)(
  'docs/conversations.md: the example in line $line',
  async ({ commands, expected }) => {
    expect(difference(expected, await shell.run(commands))).toBeNull();
  },
);
