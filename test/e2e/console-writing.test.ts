/** What is written in the console: it is sent once, and never lost (U2, U5). */
import { describe, expect, test } from 'vitest';
import { noChromium } from '../support/chromium.ts';
import { conversationOf, graphOf, say, waitForAction } from '../support/console.ts';
import { useConsole } from '../support/use-console.ts';

const system = useConsole();

async function runsOf(id: string): Promise<number> {
  return (await system.call<{ runs: number }>('GET', `/agent/session/${id}`)).runs;
}

/** A gate for requests. */
function gate(): { readonly open: () => void; readonly opened: Promise<void> } {
  const { resolve, promise } = Promise.withResolvers<void>();
  return { open: resolve, opened: promise };
}

describe.skipIf(noChromium !== null)(`in a browser${noChromium === null ? '' : `: ${noChromium}`}`, () => {
  test('[U2] Enter that is pressed twice sends once', async () => {
    const id = await system.newSession();
    const { page, faults } = await system.open(`#/sessions/${id}`);
    const box = page.getByRole('textbox', { name: 'Message' });
    await box.fill('wait 1 second');
    await box.evaluate((element) => {
      for (const _ of [1, 2]) element.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
    });
    await waitForAction(page, /echo_1.*completed/);
    expect(await runsOf(id)).toBe(1);
    // A second message would have been sent into the run.
    expect(await conversationOf(page).getByRole('article', { name: 'You', exact: true }).count()).toBe(1);
    expect(faults).toEqual([]);
  });

  test('[U2] text and files stay while another place is shown', async () => {
    const { page, faults } = await system.open(`#/sessions/${await system.newSession()}`);
    const box = page.getByRole('textbox', { name: 'Message' });
    await box.fill('not yet');
    const file = { name: `${'x'.repeat(240)}.txt`, mimeType: 'text/plain', buffer: Buffer.from('hello') };
    await page.locator('input[type=file]').setInputFiles([file]);
    await page.getByRole('link', { name: 'Agents' }).click();
    await page.getByRole('heading', { name: 'Agents' }).waitFor();
    await page.goBack();
    await expect.poll(() => box.inputValue()).toBe('not yet');
    await page.getByRole('button', { name: /^Remove x+/ }).waitFor();
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    await conversationOf(page)
      .getByText(/^x{96}\.txt$/)
      .waitFor();
    expect(faults).toEqual([]);
  });

  test('[U2] a message that was accepted is never sent again: its text is gone at once, whatever fails afterwards', async () => {
    const id = await system.newSession();
    const { page } = await system.open(`#/sessions/${id}`);
    const box = page.getByRole('textbox', { name: 'Message' });
    await box.waitFor();
    const { open, opened } = gate();
    await page.route('**/message*', async (route) => {
      await opened;
      await route.continue();
    });
    await page.route('**/history*', async (route) => await route.abort());
    await say(page, 'echo: hello');
    await expect.poll(() => box.inputValue()).toBe('');
    await page.getByRole('link', { name: 'Agents' }).click();
    await page.getByRole('heading', { name: 'Agents' }).waitFor();
    await page.unroute('**/history*');
    await page.goBack();
    await box.waitFor();
    expect(await box.inputValue()).toBe('');
    open();
    await expect.poll(async () => await runsOf(id)).toBe(1);
    await waitForAction(page, /echo_1.*completed/);
    expect(await box.inputValue()).toBe('');
  });

  test('[U2] the text of a message that is refused comes back', async () => {
    const { page } = await system.open(`#/sessions/${await system.newSession()}`);
    await page.route('**/message*', async (route) => {
      await route.fulfill({ status: 409, json: { code: 'session_busy', detail: 'The session is busy.' } });
    });
    await say(page, 'please');
    await page.getByText('The session is busy.').waitFor();
    expect(await page.getByRole('textbox', { name: 'Message' }).inputValue()).toBe('please');
  });

  test('[U2] a conversation that begins does not pull the reader back who has left', async () => {
    const { page, faults } = await system.open();
    const { open, opened } = gate();
    await page.route('**/message*', async (route) => {
      await opened;
      await route.continue();
    });
    await page.getByRole('textbox', { name: 'Message' }).waitFor();
    await say(page, 'echo: hello');
    await page.getByRole('link', { name: 'Playground' }).click();
    const answered = page.waitForResponse(/\/message/);
    open();
    await answered;
    await page.getByRole('textbox', { name: 'Protocol text' }).waitFor();
    expect(page.url()).toContain('#/playground');
    expect(faults).toEqual([]);
  });

  test('[U2] the tour goes on after a reload, also if its session has another message', async () => {
    const { page, faults } = await system.open();
    await page.getByRole('button', { name: 'Run it: Parallel work' }).click();
    await page.getByRole('button', { name: /^Next/ }).waitFor();
    await say(page, 'echo: hello');
    const graph = graphOf(page);
    await graph.getByText('1 action in 1 wave').waitFor();
    await waitForAction(page, /echo_1.*completed/);
    await page.reload();
    await page.getByRole('button', { name: /^Next/ }).waitFor();
    await page.getByRole('button', { name: 'Hide the tour' }).click();
    expect(await page.getByRole('button', { name: /^Next/ }).count()).toBe(0);
    expect(faults).toEqual([]);
  });
});
