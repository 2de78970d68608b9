/** The console with API keys, and views that are shared with a link (U6). */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { noChromium, startChromium } from '../support/chromium.ts';
import { axeViolations, openConsole, say, startConsoleSystem } from '../support/console.ts';
import type { ConsoleSystem } from '../support/console.ts';

const KEY = 'the-key-of-ann-in-this-test';
let system: ConsoleSystem;
let browser: Browser;

beforeAll(async () => {
  system = await startConsoleSystem({ LLM_PROVIDER: 'demo', API_KEYS: `ann:admin:${KEY}` }, { hasRunner: false });
  if (noChromium === null) browser = await startChromium();
});

afterAll(async () => {
  await browser?.close();
  await system?.[Symbol.asyncDispose]();
});

async function enter(page: Page, key: string): Promise<void> {
  await page.getByLabel('API key', { exact: true }).fill(key);
  await page.getByRole('button', { name: 'Use this key' }).click();
}

/** Everything that a page leaves behind in the browser. */
async function stored(page: Page): Promise<string> {
  const inPage = await page.evaluate(() =>
    JSON.stringify([
      { ...localStorage },
      { ...sessionStorage },
      document.cookie,
      history.state,
      location.href,
      window.name,
    ]),
  );
  return `${inPage}${JSON.stringify(await page.context().storageState())}`;
}

describe.skipIf(noChromium !== null)(`with API keys${noChromium === null ? '' : `: ${noChromium}`}`, () => {
  test('[U6] the page asks for a key, keeps it in memory only, and sends it in a header only', async () => {
    const { page, requests, log, faults } = await openConsole(browser, system.url);
    await page.getByRole('dialog', { name: 'Sign in' }).waitFor();
    expect(await axeViolations(page)).toEqual([]);
    await enter(page, 'not-the-key-of-anybody');
    await page.getByText('Unknown API key').waitFor();
    await enter(page, KEY);
    await expect.poll(() => page.getByRole('dialog').count()).toBe(0);
    await say(page, 'wait 1 second and remember my city is Oslo');
    await page
      .getByRole('region', { name: 'Graph' })
      .getByRole('button', { name: /echo_1.*completed/ })
      .waitFor();
    expect(requests.filter((url) => url.includes(KEY))).toEqual([]);
    expect(log.filter((line) => line.includes(KEY))).toEqual([]);
    expect(await stored(page)).not.toContain(KEY);
    // The address leads back to the session, after the key is given again.
    await page.reload();
    await enter(page, KEY);
    await page.getByRole('region', { name: 'Conversation' }).getByText('remember my city is Oslo').first().waitFor();
    expect(faults).toEqual([]);
    await page.close();
  });

  test('[U6] a shared view: its token leaves the address at once, and shows neither thoughts nor controls', async () => {
    const owner = await openConsole(browser, system.url);
    await enter(owner.page, KEY);
    await expect.poll(() => owner.page.getByRole('dialog').count()).toBe(0);
    await say(owner.page, 'wait 1 second');
    await owner.page
      .getByRole('region', { name: 'Graph' })
      .getByRole('button', { name: /echo_1.*completed/ })
      .waitFor();
    await owner.page.getByRole('button', { name: 'Share' }).click();
    await owner.page.getByRole('button', { name: 'Create a link' }).click();
    const link = await owner.page.getByLabel(/^Link/).inputValue();
    const token = /token=([^&]+)/.exec(link)?.[1] ?? '';
    expect(token.length).toBeGreaterThan(20);

    const { page, requests, faults } = await openConsole(browser, system.url, link.slice(link.indexOf('#')));
    await page
      .getByRole('region', { name: 'Graph' })
      .getByRole('button', { name: /echo_1.*completed/ })
      .waitFor();
    expect(page.url()).not.toContain('token');
    expect(await stored(page)).not.toContain(token);
    expect(requests.filter((url) => url.includes(token))).toEqual([]);
    expect(await page.getByRole('textbox', { name: 'Message' }).count()).toBe(0);
    expect(await page.getByRole('navigation').count()).toBe(0);
    expect(await page.getByText('One thing to do').count()).toBe(0);
    expect(await axeViolations(page)).toEqual([]);
    // It shows what happens from now on.
    await owner.page.keyboard.press('Escape');
    await say(owner.page, 'echo: hello to those who watch');
    await page.getByText('hello to those who watch').first().waitFor();
    expect([...faults, ...owner.faults]).toEqual([]);
    await page.reload();
    await page.getByText('no longer valid').or(page.getByRole('dialog')).first().waitFor();
    await Promise.all([page.close(), owner.page.close()]);
  });
});
