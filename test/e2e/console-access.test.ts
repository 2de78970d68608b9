/** The console with API keys, and views that are shared with a link (U6). */
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { noChromium } from '../support/chromium.ts';
import { axeViolations, conversationOf, say, waitForAction } from '../support/console.ts';
import { useConsole } from '../support/use-console.ts';

const KEY = 'the-key-of-ann-in-this-test';
const system = useConsole({ LLM_PROVIDER: 'demo', API_KEYS: `ann:admin:${KEY}` });

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
    const { page, requests, log, faults } = await system.open();
    await page.getByRole('dialog', { name: 'Sign in' }).waitFor();
    expect(await axeViolations(page)).toEqual([]);
    await enter(page, 'not-the-key-of-anybody');
    await page.getByText('Unknown API key').waitFor();
    await enter(page, KEY);
    await expect.poll(() => page.getByRole('dialog').count()).toBe(0);
    await say(page, 'echo: hello');
    await waitForAction(page, /echo_1.*completed/);
    expect(requests.filter((url) => url.includes(KEY))).toEqual([]);
    expect(log.filter((line) => line.includes(KEY))).toEqual([]);
    expect(await stored(page)).not.toContain(KEY);
    // The address leads back to the session, after the key is given again.
    await page.reload();
    await enter(page, KEY);
    await conversationOf(page).getByText('echo: hello').first().waitFor();
    expect(faults).toEqual([]);
  });

  test('[U6] a key that no header can carry is refused like any other, and one can sign in later', async () => {
    const { page, faults } = await system.open();
    await enter(page, 'schlüssel-\u{1f511}');
    await page.getByText('a character above U+00FF').waitFor();
    await page.keyboard.press('Escape');
    await page.getByText('No access.').first().waitFor();
    await page.getByRole('button', { name: 'Sign in' }).click();
    await enter(page, KEY);
    await page.getByRole('textbox', { name: 'Message' }).waitFor();
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('main');
    expect(await page.getByRole('button', { name: 'Sign in' }).count()).toBe(0);
    expect(faults).toEqual([]);
  });

  test('[U6] what was written is gone when the key is forgotten', async () => {
    const { page, faults } = await system.open('#/playground');
    await enter(page, KEY);
    const text = page.getByRole('textbox', { name: 'Protocol text' });
    await text.fill('<thought>of one person</thought>');
    await page.getByRole('button', { name: 'Forget the key' }).click();
    await page.getByRole('dialog', { name: 'Sign in' }).waitFor();
    await enter(page, KEY);
    await text.waitFor();
    expect(await text.inputValue()).not.toContain('of one person');
    expect(faults).toEqual([]);
  });

  test('[U6] a sign-in ends with its dialog', async () => {
    const { page, faults } = await system.open();
    await page.getByRole('dialog', { name: 'Sign in' }).waitFor();
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<void>();
    await page.route('**/agents', async (route) => {
      asked.resolve();
      await answer.promise;
      await route.continue().catch(() => undefined);
    });
    await enter(page, KEY);
    await asked.promise;
    // The answer arrives after the dialog has closed, and before the page hears of it.
    const hear = await page.evaluateHandle(() => {
      const held = (event: Event): void => event.stopImmediatePropagation();
      addEventListener('close', held, { capture: true });
      return (): void => {
        removeEventListener('close', held, { capture: true });
        document.querySelector('dialog')?.dispatchEvent(new Event('close'));
      };
    });
    const answered = page.waitForResponse('**/agents');
    await page.keyboard.press('Escape');
    answer.resolve();
    await (await answered).finished();
    await page.unroute('**/agents');
    // The page has read the answer: it handles this one after it.
    await page.evaluate(async () => await (await fetch('/health')).text());
    await hear.evaluate((now) => now());
    expect(await page.getByRole('button', { name: 'Forget the key' }).count()).toBe(0);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await enter(page, KEY);
    await page.getByRole('button', { name: 'Forget the key' }).waitFor();
    expect(faults).toEqual([]);
  });

  test('[U6] a shared view that was opened in a tab with a key can be left: the key is there again', async () => {
    const { page, faults } = await system.open('#/agents');
    await enter(page, KEY);
    await page.getByRole('link', { name: 'assistant', exact: true }).waitFor();
    await page.goto(`${system.url}/#/sessions/ses_00000000000000000000000000000000?token=nonsense`);
    await page.getByRole('alert').getByText('This link').waitFor();
    await page.goBack();
    await page.getByRole('link', { name: 'assistant', exact: true }).waitFor();
    await page.getByRole('navigation').waitFor();
    // The mark of a shared view, in an address that was copied from one, means nothing for an owner.
    await page.goto(`${system.url}/#/agents?view=1`);
    await page.getByRole('link', { name: 'Workflows' }).click();
    await page.getByRole('heading', { name: 'Workflows' }).waitFor();
    expect(page.url()).not.toContain('view');
    expect(await page.getByRole('dialog').count()).toBe(0);
    expect(faults).toEqual([]);
  });

  test.each(['%zz%', 'nonsense', encodeURIComponent('\u{1f511}'), 'a&view=1?token=twice'])(
    '[U6] a link with the token %s says that it is not valid, and the token leaves the address',
    async (token) => {
      const { page, faults } = await system.open(`#/sessions/ses_00000000000000000000000000000000?token=${token}`);
      await page.getByRole('alert').getByText('This link').waitFor();
      expect(page.url()).toMatch(/\?view=1$/);
      for (const role of ['dialog', 'navigation'] as const) expect(await page.getByRole(role).count()).toBe(0);
      expect(faults).toEqual([]);
    },
  );

  test('[U6] a shared view: its token leaves the address at once, and shows neither thoughts nor controls', async () => {
    const owner = await system.open();
    await enter(owner.page, KEY);
    await expect.poll(() => owner.page.getByRole('dialog').count()).toBe(0);
    await say(owner.page, 'echo: hello');
    await waitForAction(owner.page, /echo_1.*completed/);
    await owner.page.getByRole('button', { name: 'Share' }).click();
    await owner.page.getByRole('button', { name: 'Create a link' }).click();
    await owner.page.getByText('They see the parameters and results of actions.').waitFor();
    const link = await owner.page.getByLabel(/^Link/).inputValue();
    const token = /token=([^&]+)/.exec(link)?.[1] ?? '';
    expect(token.length).toBeGreaterThan(20);

    const { page, requests, faults } = await system.open(link.slice(link.indexOf('#')));
    await waitForAction(page, /echo_1.*completed/);
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
    // A reader sees what actions do, as the dialog says, and decides nothing.
    expect(requests.filter((url) => url.includes('/approvals'))).toEqual([]);
    await page.getByRole('link', { name: 'Run', exact: true }).first().click();
    await page.reload();
    await page.getByRole('alert').getByText('This link').waitFor();
    for (const role of ['dialog', 'navigation'] as const) expect(await page.getByRole(role).count()).toBe(0);
    expect(await axeViolations(page)).toEqual([]);
    await page.getByRole('link', { name: 'Open the console' }).click();
    await page.getByRole('dialog', { name: 'Sign in' }).waitFor();
    await page.getByRole('navigation').waitFor();
  });
});
