/** The console beside sessions that go on: streams, late events, other readers, small pages, focus (U1 to U5). */
import type { Locator, Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { noChromium } from '../support/chromium.ts';
import { openConsole, say } from '../support/console.ts';
import { useConsole } from '../support/use-console.ts';

const PHONE = { viewport: { width: 360, height: 740 } };
/** Turns what follows around. */
const REORDER = '\u202e';
const system = useConsole({ LLM_PROVIDER: 'demo' }, { hasRunner: true });

async function call<T>(method: string, path: string, body?: object | string): Promise<T> {
  const response = await fetch(`${system.url}${path}`, {
    method,
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  expect([path, text, response.status < 300]).toEqual([path, text, true]);
  return (text === '' ? null : JSON.parse(text)) as T;
}

async function newSession(agent = 'assistant', more: object = {}): Promise<string> {
  return (await call<{ session_id: string }>('POST', `/agent/${agent}/session`, more)).session_id;
}

/** Runs protocol text as if a model had written it. */
async function execute(text: string): Promise<{ readonly session_id: string; readonly run_id: string }> {
  return await call('POST', '/execute/direct', { protocol_text: text, stream: false });
}

function late(ms: number): string {
  return (
    `<action type="tool" mode="fire_and_forget" id="late">{"name":"echo","parameters":{"message":"x","delay_ms":${ms}}}</action>` +
    '<action type="tool" mode="async" id="soon">{"name":"echo","parameters":{"message":"y"}}</action>' +
    '<response final="true">$soon.message</response>'
  );
}

/** How many streams of events a page has open, now and whenever it is called later. */
function openStreams(page: Page): () => number {
  const open = new Set<unknown>();
  page.on('request', (request) => {
    if (new URL(request.url()).pathname.endsWith('/events')) open.add(request);
  });
  page.on('requestfinished', (request) => open.delete(request));
  page.on('requestfailed', (request) => open.delete(request));
  return () => open.size;
}

function graphOf(page: Page) {
  return page.getByRole('region', { name: 'Graph' });
}

function approve(page: Page | Locator) {
  return page.getByRole('button', { name: 'Approve', exact: true });
}

async function approvalsOf(id: string): Promise<readonly { readonly approval_id: string }[]> {
  return (await call<{ approvals: { approval_id: string }[] }>('GET', `/agent/session/${id}/approvals`)).approvals;
}

/** As somebody else would. */
async function denyAll(id: string): Promise<void> {
  for (const { approval_id: approval } of await approvalsOf(id)) {
    await call('POST', `/agent/session/${id}/approvals/${approval}`, { approve: false });
  }
}

/** Headless pages are never hidden. */
async function hide(page: Page, isHidden: boolean): Promise<void> {
  await page.evaluate((hidden) => {
    Object.defineProperty(document, 'hidden', { configurable: true, value: hidden });
    document.dispatchEvent(new Event('visibilitychange'));
  }, isHidden);
}

/** Says what has the focus. */
async function focused(page: Page): Promise<string> {
  return await page.evaluate(() => {
    const { tagName, ariaLabel, id } = document.activeElement ?? document.body;
    return `${tagName} ${ariaLabel ?? id}`;
  });
}

describe.skipIf(noChromium !== null)(`in a browser${noChromium === null ? '' : `: ${noChromium}`}`, () => {
  test('[U2] a session that waits has one stream in each tab, so that three tabs leave room for a decision', async () => {
    const id = await newSession('careful_assistant');
    const tabs = await Promise.all([1, 2, 3].map(async () => await openConsole(system.browser, system.url)));
    const counts = tabs.map(({ page }) => openStreams(page));
    await tabs[0]?.page.goto(`${system.url}/#/sessions/${id}`);
    await say(tabs[0]?.page as Page, 'compute 3**50 in python');
    await approve(tabs[0]?.page as Page).waitFor();
    for (const { page } of tabs) {
      await page.goto(`${system.url}/#/sessions/${id}`);
      await page.reload();
      await graphOf(page)
        .getByRole('button', { name: /python_1.*waiting/ })
        .waitFor();
      await approve(page).waitFor();
    }
    for (const count of counts) await expect.poll(count).toBe(1);
    await approve(tabs[2]?.page as Page).click();
    for (const { page } of tabs) {
      await page.getByRole('region', { name: 'Conversation' }).getByText('717897987691852588770249').first().waitFor();
    }
    for (const count of counts) expect(count()).toBe(1);
    expect(tabs.flatMap(({ faults }) => faults)).toEqual([]);
    for (const { page } of tabs) await page.close();
  });

  test('[U3] an action that ends after its run: the run can be read, and the session is idle', async () => {
    const { session_id: id, run_id: run } = await execute(late(15_000));
    await call('POST', `/agent/session/${id}/message`, { content: 'echo: another run', stream: false });
    const { page, faults } = await openConsole(system.browser, system.url, `#/sessions/${id}`);
    const head = page.locator('.session-head');
    await head.getByText('running').waitFor();
    // The newest run is shown, and the earlier one is not loaded.
    await head.getByText('idle').waitFor();
    expect(await page.getByRole('button', { name: 'Stop' }).count()).toBe(0);
    await page.goto(`${system.url}/#/sessions/${id}/runs/${run}`);
    for (const action of ['soon', 'late']) {
      await graphOf(page)
        .getByRole('button', { name: new RegExp(`${action}.*completed`) })
        .waitFor();
    }
    expect(await page.getByText(/in sequence/).count()).toBe(0);
    expect(faults).toEqual([]);
    await page.close();
  });

  test('[U3] a late event that arrives while its run is loaded is not lost', async () => {
    const { session_id: id, run_id: run } = await execute(late(3_000));
    const { page, faults } = await openConsole(system.browser, system.url, `#/sessions/${id}/runs/${run}`);
    await graphOf(page)
      .getByRole('button', { name: /late.*completed/ })
      .waitFor();
    await graphOf(page).getByText('2 actions', { exact: false }).waitFor();
    expect(faults).toEqual([]);
    await page.close();
  });

  test('[U1] on a phone, the link of a run and the chip of an action lead to the run, and back', async () => {
    const { page, faults } = await openConsole(system.browser, system.url, `#/sessions/${await newSession()}`, PHONE);
    await say(page, 'compute 2**9 in python');
    await page.getByRole('link', { name: /python/ }).click();
    await page.getByRole('complementary', { name: 'Action python_1' }).waitFor();
    await page.reload();
    await page.getByRole('complementary', { name: 'Action python_1' }).waitFor();
    await page.getByRole('button', { name: 'Chat', exact: true }).click();
    await page.getByRole('link', { name: 'Run', exact: true }).click();
    await graphOf(page).waitFor();
    expect(await page.getByRole('textbox', { name: 'Message' }).isVisible()).toBe(false);
    await page.getByRole('button', { name: 'Chat', exact: true }).click();
    await say(page, 'echo: again');
    await page.getByRole('region', { name: 'Conversation' }).getByText('again').first().waitFor();
    expect(faults).toEqual([]);
    await page.close();
  });

  test('[U4] a request for approval does not move while another one is decided elsewhere', async () => {
    const ids = [await newSession('careful_assistant'), await newSession('careful_assistant')];
    for (const [index, id] of ids.entries()) {
      await call('POST', `/agent/session/${id}/message`, {
        content: `compute 7**${index + 30} in python`,
        stream: false,
      });
    }
    const { page, faults } = await openConsole(system.browser, system.url, '#/approvals');
    const cardOf = (power: number) => page.getByRole('article').filter({ hasText: `print(7**${power})` });
    const before = await cardOf(31).boundingBox();
    await denyAll(ids[0] ?? '');
    await cardOf(30).getByText('No longer open').waitFor();
    expect(await cardOf(31).boundingBox()).toEqual(before);
    await approve(page).last().focus();
    await page.keyboard.press('Enter');
    await expect.poll(() => cardOf(31).count()).toBe(0);
    expect(await focused(page)).not.toBe('BODY ');
    expect(faults).toEqual([]);
    await page.close();
  });

  test('[U4] a decision that comes too late says so, and moves nothing', async () => {
    const ids = [await newSession('careful_assistant'), await newSession('careful_assistant')];
    for (const [index, id] of ids.entries()) {
      await call('POST', `/agent/session/${id}/message`, {
        content: `compute 6**${index + 30} in python`,
        stream: false,
      });
    }
    const { page, faults } = await openConsole(system.browser, system.url, '#/approvals');
    const cardOf = (power: number) => page.getByRole('article').filter({ hasText: `print(6**${power})` });
    await cardOf(31).waitFor();
    // The list is not loaded again.
    await page.route(
      ({ pathname }) => pathname === '/approvals',
      () => undefined,
    );
    await denyAll(ids[0] ?? '');
    const before = await cardOf(31).boundingBox();
    await approve(cardOf(30)).click();
    await cardOf(30).getByText('No longer open').waitFor();
    expect(await cardOf(31).boundingBox()).toEqual(before);
    await denyAll(ids[1] ?? '');
    expect(faults).toEqual([]);
    await page.close();
  });

  test('[U2] requests for approval are gone when their run is stopped', async () => {
    const id = await newSession('careful_assistant');
    const { page, faults } = await openConsole(system.browser, system.url, `#/sessions/${id}`);
    await say(page, 'compute 2**5 in python, list the files in shell and compute 3**5 in python at the same time');
    await expect.poll(() => approve(page).count()).toBe(3);
    await page.getByRole('button', { name: 'Stop' }).click();
    await expect.poll(() => approve(page).count()).toBe(0);
    await page.locator('.session-head').getByText('idle').waitFor();
    expect(faults).toEqual([]);
    await page.close();
  });

  test('[U2] a sub-agent that asks while the page is hidden is shown afterwards', async () => {
    await call(
      'PUT',
      '/manifests/agent/boss',
      'kind: Agent\nversion: "1.0"\nname: boss\nsummary: It delegates.\npersona: {agent: You help.}\n' +
        'import: {agents: [careful_assistant], tools: [echo]}\n',
    );
    const { page, faults } = await openConsole(system.browser, system.url);
    await page.clock.install();
    await page.goto(`${system.url}/?boss#/playground?agent=boss`);
    await page
      .getByRole('textbox', { name: 'Protocol text' })
      .fill(
        '<action type="tool" mode="async" id="w">{"name":"echo","parameters":{"message":"x","delay_ms":10000}}</action>' +
          '<action type="agent" name="careful_assistant" mode="async" id="sub" depends_on="w">compute 2**77 in python</action>' +
          '<response final="true">$sub</response>',
      );
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await graphOf(page)
      .getByRole('button', { name: /^w.*running/ })
      .waitFor();
    await hide(page, true);
    await page.clock.fastForward(21_000);
    const id = /ses_[0-9a-f]+/.exec(page.url())?.[0] ?? '';
    await expect.poll(async () => (await approvalsOf(id)).length, { timeout: 60_000 }).toBe(1);
    expect(await approve(page).count()).toBe(0);
    await hide(page, false);
    await approve(page).waitFor();
    await approve(page).click();
    await page.getByRole('region', { name: 'Conversation' }).getByText('151115727451828646838272').first().waitFor();
    expect(faults).toEqual([]);
    await page.close();
  });

  test('[U2] a run that does not exist, and a session that is deleted while it is shown, say so', async () => {
    const id = await newSession();
    const { page } = await openConsole(system.browser, system.url, `#/sessions/${id}/runs/run_none`);
    await page.getByText('unknown_run').waitFor();
    expect(await page.getByText('Loading …').count()).toBe(0);
    await page.goto(`${system.url}/#/sessions/${id}`);
    await page.getByText('The run of your first message').waitFor();
    await call('DELETE', `/agent/session/${id}`);
    await page.getByText('unknown_session').waitFor();
    expect(await page.getByText('The connection is lost').count()).toBe(0);
    await page.close();
  });

  test('[U4] the session of a workflow takes no message, and leads to its workflow', async () => {
    const { page, faults } = await openConsole(system.browser, system.url, '#/workflows/data_pipeline');
    await page
      .getByRole('textbox', { name: 'Inputs' })
      .fill('{"orders": [{"item": "pen", "price": 2, "quantity": 3}]}');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByRole('region', { name: 'Timeline' }).getByText('workflow').first().waitFor();
    expect(await page.getByRole('textbox', { name: 'Message' }).count()).toBe(0);
    await page.getByRole('heading', { level: 1 }).getByRole('link').click();
    await page.getByRole('heading', { name: 'data_pipeline' }).waitFor();
    expect(faults).toEqual([]);
    await page.close();
  });

  test('[U2] Escape in the message box leaves the details open, and the focus stays in the conversation', async () => {
    const tools = [{ name: 'get_location', description: 'Where the user is', parameters: { type: 'object' } }];
    const { page, faults } = await openConsole(system.browser, system.url, `#/sessions/${await newSession()}`);
    await page.getByText('Client tools', { exact: true }).click();
    await page.getByRole('textbox', { name: /Tools that you execute/ }).fill(JSON.stringify(tools));
    await say(page, 'use get_location');
    await page.getByRole('textbox', { name: /result/i }).fill('Oslo');
    await page.getByRole('button', { name: 'Send result' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('region', { name: 'Conversation' }).getByText('Oslo').first().waitFor();
    expect(await focused(page)).toBe('SECTION Conversation');
    await graphOf(page)
      .getByRole('button', { name: /completed/ })
      .first()
      .click();
    await page.getByRole('complementary', { name: /^Action/ }).waitFor();
    await page.getByRole('textbox', { name: 'Message' }).press('Escape');
    expect(await page.getByRole('complementary', { name: /^Action/ }).count()).toBe(1);
    await say(page, 'wait 20 seconds');
    await page.getByRole('button', { name: 'Stop' }).focus();
    await page.keyboard.press('Enter');
    await expect.poll(() => page.getByRole('button', { name: 'Stop' }).count()).toBe(0);
    expect(await focused(page)).toBe('TEXTAREA Message');
    expect(faults).toEqual([]);
    await page.close();
  });

  test('[U2] what is lost with the connection is loaded afterwards, and the page says only then that it is lost', async () => {
    const { page, faults } = await openConsole(system.browser, system.url, `#/sessions/${await newSession()}`);
    await say(page, 'wait 2 seconds');
    await graphOf(page)
      .getByRole('button', { name: /echo_1.*running/ })
      .waitFor();
    await page.context().setOffline(true);
    await page.getByText('The connection is lost').waitFor();
    await page.context().setOffline(false);
    await graphOf(page)
      .getByRole('button', { name: /echo_1.*completed/ })
      .waitFor();
    await page.locator('.session-head').getByText('idle').waitFor();
    await expect.poll(() => page.getByText('The connection is lost').count()).toBe(0);
    expect(faults.filter((fault) => !fault.includes('ERR_INTERNET_DISCONNECTED'))).toEqual([]);
    await page.close();
  });

  test('[U3] the error of a run that was left is not shown beside another one', async () => {
    const { session_id: id, run_id: first } = await execute(late(1));
    const { page } = await openConsole(system.browser, system.url, `#/sessions/${id}`);
    await graphOf(page)
      .getByRole('button', { name: /soon.*completed/ })
      .waitFor();
    await say(page, 'wait 1 second');
    await graphOf(page)
      .getByRole('button', { name: /echo_1.*completed/ })
      .waitFor();
    const latest = page.url();
    await page.reload();
    await graphOf(page)
      .getByRole('button', { name: /echo_1.*completed/ })
      .waitFor();
    // The earlier run cannot be loaded: its request is lost again and again.
    await page.route(
      ({ search }) => search.includes(first),
      async (route) => await route.abort(),
    );
    await page.goto(`${system.url}/#/sessions/${id}/runs/${first}`);
    await graphOf(page).getByText('Loading …').waitFor();
    await page.goto(latest);
    await graphOf(page)
      .getByRole('button', { name: /echo_1.*completed/ })
      .waitFor();
    await page.goto(`${system.url}/#/sessions/${id}/runs/${first}`);
    await page.getByRole('alert').waitFor();
    await page.goto(latest);
    await graphOf(page)
      .getByRole('button', { name: /echo_1.*completed/ })
      .waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
    await page.close();
  });

  test('[U2] while messages are queued, the run that works is shown', async () => {
    const { page, faults } = await openConsole(system.browser, system.url, `#/sessions/${await newSession()}`);
    await say(page, 'wait 60 seconds');
    await graphOf(page)
      .getByRole('button', { name: /echo_1.*running/ })
      .waitFor();
    await say(page, 'wait 1 second');
    await page.getByText('Queued', { exact: true }).waitFor();
    await graphOf(page)
      .getByRole('button', { name: /echo_1.*running/ })
      .waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.locator('.session-head').getByText('idle').waitFor();
    expect(faults).toEqual([]);
    await page.close();
  });

  test('[U2] a page that is hidden for long gives its connection back, and goes on when it is shown', async () => {
    const id = await newSession();
    const { page, faults } = await openConsole(system.browser, system.url);
    const count = openStreams(page);
    await page.clock.install();
    await page.goto(`${system.url}/#/sessions/${id}`);
    await page.reload();
    await expect.poll(count).toBe(1);
    await hide(page, true);
    await page.clock.fastForward(21_000);
    await expect.poll(count).toBe(0);
    await call('POST', `/agent/session/${id}/message`, { content: 'echo: while nobody looks', stream: false });
    await hide(page, false);
    await page.getByRole('region', { name: 'Conversation' }).getByText('while nobody looks').nth(1).waitFor();
    expect(count()).toBe(1);
    expect(faults).toEqual([]);
    await page.close();
  });

  test('[U2] earlier messages of a long conversation are loaded above those that are shown', async () => {
    const history = Array.from({ length: 300 }, (_, index) => ({
      role: index % 2 === 0 ? 'user' : 'assistant',
      content: `earlier message ${index} of them`,
    }));
    const id = await newSession('assistant', { history });
    const { page, faults } = await openConsole(system.browser, system.url, `#/sessions/${id}`);
    const conversation = page.getByRole('region', { name: 'Conversation' });
    await conversation.getByText('earlier message 299 of them').waitFor();
    expect(await conversation.getByText('earlier message 0 of them').count()).toBe(0);
    for (let pages = 0; (await conversation.getByText('earlier message 0 of them').count()) === 0; pages += 1) {
      expect(pages).toBeLessThan(20);
      const articles = conversation.getByRole('article');
      const shown = await articles.count();
      await conversation.getByRole('button', { name: 'Load earlier messages' }).click();
      await expect.poll(async () => await articles.count()).toBeGreaterThan(shown);
    }
    const texts = await conversation.getByText(/earlier message \d+ of them/).allTextContents();
    expect(texts).toEqual(history.map(({ content }) => content));
    expect(faults).toEqual([]);
    await page.close();
  });

  test('[U2] text of a manifest does not reorder the page', async () => {
    await call(
      'PUT',
      '/manifests/agent/turned',
      `kind: Agent\nversion: "1.0"\nname: turned\nsummary: "safe ${REORDER}evil"\npersona: {agent: You help.}\n`,
    );
    for (const hash of ['#/agents', '#/manifests', '#/manifests/agent/turned', '#/?agent=turned']) {
      const { page, faults } = await openConsole(system.browser, system.url, hash);
      await page.getByText('safe [U+202E]evil').first().waitFor();
      expect(faults).toEqual([]);
      await page.close();
    }
  });
});
