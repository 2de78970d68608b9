/** The React hook in Chromium, with real React in StrictMode and a real system (K3). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Browser, Page } from 'playwright-core';
import { bundleForPage, noChromium, openChromium, startPageSite } from '../support/chromium.ts';
import type { PageSite } from '../support/chromium.ts';
import { sharedPart, sharedPort } from '../support/shared.ts';

let url: string;
let site: PageSite;
let browser: Browser;

describe.skipIf(noChromium !== null)(`[K3] useAgent${noChromium === null ? '' : ` (${noChromium})`}`, () => {
  beforeAll(async () => {
    const [script, port] = await Promise.all([bundleForPage('test/react/page.ts', 'page'), sharedPort()]);
    [url, site, browser] = await Promise.all([sharedPart('system'), startPageSite(script, { port }), openChromium()]);
  });

  afterAll(async () => {
    await browser?.close();
    await site?.[Symbol.asyncDispose]();
  });

  async function open(query: Readonly<Record<string, string>> = {}): Promise<Page> {
    const page = await browser.newPage();
    page.on('pageerror', ({ message }) => expect.unreachable(message));
    await page.goto(`${site.origin}/?${new URLSearchParams({ system: url, ...query }).toString()}`);
    return page;
  }

  async function say(page: Page, text: string): Promise<void> {
    await page.locator('input').fill(text);
    await page.getByRole('button', { name: 'Send' }).click();
  }

  const textOf = async (page: Page, selector: string): Promise<string> =>
    (await page.locator(selector).textContent()) ?? '';
  const status = (page: Page) => expect.poll(() => textOf(page, '#status'));

  test('sends a message once, streams the answer, and continues the conversation after a reload', async () => {
    const page = await open();
    await say(page, 'calculate 6 * 7');
    await status(page).toBe('idle');
    await expect
      .poll(() => page.locator('li').allTextContents())
      .toEqual(['calculate 6 * 7', expect.stringContaining('42')]);
    expect(await page.locator('li.assistant').getAttribute('data-actions')).toBe('1');

    const session = await textOf(page, '#session');
    expect(session).toMatch(/^ses_/);
    const again = await open({ session });
    await expect
      .poll(() => again.locator('li').allTextContents())
      .toEqual(['calculate 6 * 7', expect.stringContaining('42')]);
    await say(again, 'calculate 3 * 3');
    await status(again).toBe('idle');
    await expect.poll(() => again.locator('li').count()).toBe(4);
    expect(await again.locator('li').last().textContent()).toContain('9');
  });

  test('shows what waits for a person, also after the component was away, and continues after the decision', async () => {
    const page = await open({ agent: 'careful_assistant' });
    await say(page, 'compute 2**10 in python');
    await page.getByRole('button', { name: 'Approve' }).waitFor();
    await status(page).toBe('waiting');

    const reloaded = await open({ agent: 'careful_assistant', session: await textOf(page, '#session') });
    await reloaded.getByRole('button', { name: 'Approve' }).click();
    await status(reloaded).toBe('idle');
    await status(page).toBe('idle');
    expect(await page.locator('li').last().textContent()).toContain('1024');
    expect(await reloaded.locator('li').last().textContent()).toContain('1024');
  });

  test('a denial, and an agent that does not exist, leave a conversation that can go on', async () => {
    const page = await open({ agent: 'careful_assistant' });
    await say(page, 'compute 2**11 in python');
    await page.getByRole('button', { name: 'Deny' }).click();
    await status(page).toBe('idle');

    const wrong = await open({ agent: 'nobody_here' });
    await say(wrong, 'hello');
    await status(wrong).toBe('error');
    expect(await textOf(wrong, '#error')).toContain('nobody_here');
    expect(await wrong.locator('li.user').count()).toBe(1);
  });
});
