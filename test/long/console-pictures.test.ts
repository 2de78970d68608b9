/**
 * The pictures of docs/console.md: each view is opened as a reader sees it. `npm run screenshots` (CORTEX_PICTURES names the
 * folder) keeps them; otherwise they are made in a temporary folder, which shows that they can be.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { noChromium } from '../support/chromium.ts';
import { approveIn } from '../support/console.ts';
import type { PageOptions } from '../support/console.ts';
import { useConsole } from '../support/use-console.ts';

const LIGHT = { viewport: { width: 1280, height: 800 }, colorScheme: 'light' } as const;
const DARK = { viewport: { width: 1280, height: 800 }, colorScheme: 'dark' } as const;
const PHONE = { viewport: { width: 390, height: 844 }, colorScheme: 'light' } as const;
/** An empty page has fewer. */
const LEAST_BYTES = 10_000;

const folder = mkdtempSync(join(tmpdir(), 'cortex-pictures-'));
const target = process.env['CORTEX_PICTURES'] ?? join(folder, 'images');
const system = useConsole();

beforeAll(() => {
  mkdirSync(target, { recursive: true });
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const step = (title: string) => async (page: Page) => {
  await page.getByRole('button', { name: `Run it: ${title}` }).click();
  await page.getByRole('button', { name: /^Next/ }).waitFor();
  await page.locator('.session-head').getByText('idle').waitFor();
};

const PICTURES: readonly (readonly [string, string, PageOptions, (page: Page) => Promise<unknown>])[] = [
  ['console-start', '', LIGHT, async (page) => await page.getByRole('textbox', { name: 'Message' }).waitFor()],
  ['console-run', '', LIGHT, step('Parallel work')],
  ['console-dark', '', DARK, step('A dependency, one generation')],
  ['console-phone', '', PHONE, step('A dependency, one generation')],
  [
    'console-approval',
    '',
    LIGHT,
    async (page) => {
      await page.getByRole('button', { name: 'Run it: Approval' }).click();
      await approveIn(page).waitFor();
      await page.locator('.session-head').getByText('waiting').waitFor();
    },
  ],
  [
    'console-playground',
    '#/playground',
    LIGHT,
    async (page) => {
      await page
        .getByRole('textbox', { name: 'Protocol text' })
        .fill(readFileSync('cli/demo/research-assistant.xml', 'utf8'));
      await page
        .getByText(/speed-?up/i)
        .first()
        .waitFor();
    },
  ],
  ['console-agent', '#/agents/assistant', LIGHT, async (page) => await page.getByText(/^Together .* tokens/).waitFor()],
];

describe.skipIf(noChromium !== null)(`in a browser${noChromium === null ? '' : `: ${noChromium}`}`, () => {
  test.each(PICTURES)('the picture %s', async (name, hash, options, prepare) => {
    const { page, faults } = await system.open(hash, options);
    await prepare(page);
    await expect.poll(() => page.getByText('Loading …').count()).toBe(0);
    const file = join(target, `${name}.png`);
    await page.screenshot({ path: file });
    expect(statSync(file).size).toBeGreaterThan(LEAST_BYTES);
    expect(faults).toEqual([]);
  });

  test('every picture of the docs is made here', () => {
    const made = new Set(PICTURES.map(([name]) => `${name}.png`));
    const used = ['docs/console.md', 'README.md'].flatMap((page) =>
      [...readFileSync(page, 'utf8').matchAll(/\bimages\/([\w-]+\.png)/g)].map(([, name = '']) => name),
    );
    expect(used.length).toBeGreaterThan(0);
    expect(used.filter((name) => !made.has(name))).toEqual([]);
    const stored = readdirSync('docs/images');
    expect(used.filter((name) => !stored.includes(name))).toEqual([]);
    expect(stored.filter((name) => !used.includes(name))).toEqual([]);
  });
});
