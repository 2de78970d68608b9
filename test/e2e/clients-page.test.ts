/** docs/clients.md: each of its programs runs with the unchanged client packages on a real system with the demo model (E, K3). */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PACKAGE_ROOT } from '../../cli/project/folders.ts';
import { noChromium, openPage, openChromium, startPageSite } from '../support/chromium.ts';
import type { PageSite } from '../support/chromium.ts';
import { difference, PageShell, readExamples } from '../support/page-examples.ts';
import { lacks, PAGE_PROGRAMS } from '../support/programs.ts';
import { sharedNamespace, sharedPart, sharedPort } from '../support/shared.ts';
import type { Namespace } from '../support/shared.ts';

const ADDRESS = 'http://127.0.0.1:8787';
const run = promisify(execFile);

const examples = readExamples(readFileSync('docs/clients.md', 'utf8'), ['ts', 'tsx']);
const programs = examples.filter(({ form }) => form === 'ts');
const pages = examples.filter(({ form }) => form === 'tsx');
const commands = examples.filter(({ form }) => form === 'sh');

const folder = mkdtempSync(join(tmpdir(), 'cortex-clients-'));
/** Where the packages of this repository are found. */
const beside = mkdtempSync(join(PACKAGE_ROOT, 'node_modules', '.clients-'));
/** Of a system that only this machine calls. */
let open: string;
/** With API keys, for pages of another origin. */
let closed: Namespace;
let browser: Browser;
const sites: PageSite[] = [];

async function bundle(code: string, loader: 'ts' | 'tsx', address: string): Promise<string> {
  const isPage = loader === 'tsx';
  const { outputFiles } = await build({
    stdin: { contents: code.replaceAll(ADDRESS, address), resolveDir: PACKAGE_ROOT, loader },
    bundle: true,
    write: false,
    format: 'esm',
    jsx: 'automatic',
    platform: isPage ? 'browser' : 'node',
    target: 'es2024',
    alias: { 'cortex-edge/client': join(PACKAGE_ROOT, 'src/client/all.ts') },
    logLevel: 'silent',
    ...(isPage ? { define: { 'process.env.NODE_ENV': '"production"' } } : { packages: 'external' }),
  });
  return outputFiles[0]?.text ?? '';
}

/** What the server of an application does for its pages. */
async function token(): Promise<string> {
  const response = await fetch(`${closed.url}/tokens`, {
    method: 'POST',
    headers: closed.authorization,
    body: JSON.stringify({ user_id: 'zoë' }),
  });
  return ((await response.json()) as { token: string }).token;
}

beforeAll(async () => {
  [open, closed] = await Promise.all([sharedPart('system'), sharedNamespace()]);
  for (const { commands: code } of pages) {
    const script = await bundle(code, 'tsx', closed.url);
    sites.push(await startPageSite(script, { isModule: true, port: await sharedPort(), answers: { '/token': token } }));
  }
  if (noChromium === null) browser = await openChromium();
});

afterAll(async () => {
  await browser?.close();
  await Promise.all(sites.map((site) => site[Symbol.asyncDispose]()));
  for (const each of [folder, beside]) rmSync(each, { recursive: true, force: true });
});

test('docs/clients.md has programs and pages', () => {
  expect([programs.length >= 2, pages.length, commands.length >= 2]).toEqual([true, 2, true]);
});

describe('docs/clients.md', () => {
  const shell = (): PageShell => new PageShell(open, folder);

  test.skipIf(lacks(...PAGE_PROGRAMS)).each(commands)(
    'the commands in line $line',
    async ({ commands: text, expected }) => {
      expect(difference(expected, await shell().run(text))).toBeNull();
    },
  );

  test.each(programs)('the program in line $line', async ({ line, commands: code, expected }) => {
    const file = join(beside, `line${line}.mjs`);
    writeFileSync(file, await bundle(code, 'ts', open));
    const { stdout } = await run(process.execPath, [file], { cwd: PACKAGE_ROOT });
    expect(difference(expected, stdout)).toBeNull();
  });
});

describe.skipIf(noChromium !== null)(
  `docs/clients.md, in a browser${noChromium === null ? '' : `: ${noChromium}`}`,
  () => {
    const visit = async (index: number): Promise<{ page: Page; faults: string[] }> => {
      const site = sites[index];
      if (site === undefined) throw new Error('no site');
      return await openPage(browser, site);
    };
    const say = async (page: Page, text: string): Promise<void> => {
      await page.getByPlaceholder('Message').fill(text);
      await page.getByPlaceholder('Message').press('Enter');
    };

    test('[E1] the page with useChat, before and after it is loaded again', async () => {
      const { page, faults } = await visit(0);
      await say(page, 'What is 6 * 7?');
      await page.getByText('[calculator]').waitFor();
      const shown = page.locator('p.assistant');
      await expect.poll(() => shown.innerText()).toMatch(/42[^]*really ran/);
      await page.reload();
      await expect.poll(() => page.locator('p').count()).toBe(2);
      await expect.poll(() => shown.innerText()).toMatch(/42[^]*really ran/);
      // In the middle of a run.
      await say(page, 'What is 2 + 3?');
      await page.locator('p.assistant').nth(1).waitFor();
      await page.reload();
      await expect.poll(() => shown.nth(1).innerText()).toMatch(/5[^]*really ran/);
      expect(await page.locator('p').count()).toBe(4);
      expect(faults).toEqual([]);
      await page.close();
    });

    test('[E1] the page with assistant-ui renders a run', async () => {
      const { page, faults } = await visit(1);
      await say(page, 'What is 6 * 7?');
      const last = page.locator('.message').last();
      await expect.poll(() => last.innerText()).toMatch(/What is 6 \* 7[^]*42[^]*really ran/);
      expect(await page.locator('.message').count()).toBe(2);
      expect(faults).toEqual([]);
      await page.close();
    });
  },
);
