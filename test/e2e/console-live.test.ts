/** The console beside sessions that go on: streams, late events, lost connections, small pages, focus (U1 to U4). */
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { noChromium } from '../support/chromium.ts';
import { approveIn, conversationOf, focused, graphOf, say, setHidden, waitForAction } from '../support/console.ts';
import { useConsole } from '../support/use-console.ts';

const PHONE = { viewport: { width: 360, height: 740 } };
/** Turns what follows around. */
const REORDER = '\u202e';
const system = useConsole();

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

describe.skipIf(noChromium !== null)(`in a browser${noChromium === null ? '' : `: ${noChromium}`}`, () => {
  test('[U2] a session that waits has one stream in each tab, so that three tabs leave room for a decision', async () => {
    const id = await system.newSession('careful_assistant');
    const tabs = await Promise.all([1, 2, 3].map(async () => await system.open()));
    const counts = tabs.map(({ page }) => openStreams(page));
    await tabs[0]?.page.goto(`${system.url}/#/sessions/${id}`);
    await say(tabs[0]?.page as Page, 'compute 3**50 in python');
    await approveIn(tabs[0]?.page as Page).waitFor();
    for (const { page } of tabs) {
      await page.goto(`${system.url}/#/sessions/${id}`);
      await waitForAction(page, /python_1.*waiting/);
      await approveIn(page).waitFor();
    }
    for (const count of counts) await expect.poll(count).toBe(1);
    await approveIn(tabs[2]?.page as Page).click();
    for (const { page } of tabs) {
      await conversationOf(page).getByText('717897987691852588770249').first().waitFor();
    }
    for (const count of counts) await expect.poll(count).toBe(1);
    expect(tabs.flatMap(({ faults }) => faults)).toEqual([]);
  });

  test('[U3] an action that ends after its run: the run can be read, and the session is idle', async () => {
    const { session_id: id, run_id: run } = await system.execute(late(15_000));
    await system.send(id, 'echo: another run');
    const { page, faults } = await system.open(`#/sessions/${id}`);
    const head = page.locator('.session-head');
    await head.getByText('running').waitFor();
    // The newest run is shown, and the earlier one is not loaded.
    await head.getByText('idle').waitFor();
    expect(await page.getByRole('button', { name: 'Stop' }).count()).toBe(0);
    await page.goto(`${system.url}/#/sessions/${id}/runs/${run}`);
    for (const action of ['soon', 'late']) {
      await waitForAction(page, new RegExp(`${action}.*completed`));
    }
    expect(faults).toEqual([]);
  });

  test('[U3] a late event that arrives while its run is loaded is not lost', async () => {
    const { session_id: id, run_id: run } = await system.execute(late(3_000));
    const { page, faults } = await system.open(`#/sessions/${id}/runs/${run}`);
    await waitForAction(page, /late.*completed/);
    await graphOf(page).getByText('2 actions', { exact: false }).waitFor();
    expect(faults).toEqual([]);
  });

  test('[U1] on a phone, the link of a run and the chip of an action lead to the run, and back', async () => {
    const { page, faults } = await system.open(`#/sessions/${await system.newSession()}`, PHONE);
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
    await conversationOf(page).getByText('again').first().waitFor();
    expect(faults).toEqual([]);
  });

  test.each(['System', 'Manifests', 'Playground'])(
    '[U1] on a phone, the place of an address is in view: %s',
    async (place) => {
      const { page } = await system.open(`#/${place.toLowerCase()}`, PHONE);
      await expect
        .poll(async () => {
          const { x = -1, width = 0 } =
            (await page.getByRole('link', { name: place, exact: true }).boundingBox()) ?? {};
          return x >= 0 && x + width <= PHONE.viewport.width;
        })
        .toBe(true);
    },
  );

  test('[U1] on a phone, Send stays where it is while a run works, and the arrows of versions are large', async () => {
    const id = await system.newSession();
    await system.send(id, 'echo: first');
    const [run] = (await system.call<{ runs: { run_id: string }[] }>('GET', `/agent/session/${id}/runs`)).runs;
    await system.call('POST', `/agent/session/${id}/runs/${run?.run_id}/retry`, { stream: false });
    const { page, faults } = await system.open(`#/sessions/${id}`, PHONE);
    const arrow = await page.getByRole('button', { name: 'Previous version' }).boundingBox();
    expect(Math.min(arrow?.width ?? 0, arrow?.height ?? 0)).toBeGreaterThanOrEqual(24);
    const right = async (): Promise<number> => {
      const { x = 0, width = 0 } = (await page.getByRole('button', { name: 'Send', exact: true }).boundingBox()) ?? {};
      return x + width;
    };
    const before = await right();
    await say(page, 'wait 60 seconds');
    await page.getByRole('button', { name: 'Stop' }).waitFor();
    expect(await right()).toBe(before);
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.locator('.session-head').getByText('idle').waitFor();
    expect(faults).toEqual([]);
  });

  test('[U3] no label of the timeline is cut', async () => {
    // Longer than 2 s, so that the last label is at the end of the axis.
    const { session_id: id, run_id: run } = await system.execute(
      '<action type="tool" mode="async" id="e">{"name":"echo","parameters":{"delay_ms":1999}}</action>',
    );
    const { page } = await system.open(`#/sessions/${id}/runs/${run}`);
    const axis = page.locator('svg.timeline-head');
    await axis.getByText('2 s', { exact: true }).waitFor();
    const beyond = await axis.evaluate((svg) => {
      const { right } = svg.getBoundingClientRect();
      return [...svg.querySelectorAll('.tick')].filter((label) => label.getBoundingClientRect().right > right).length;
    });
    expect(beyond).toBe(0);
  });

  test('[U6] on a phone, the head of a shared view is not cut', async () => {
    const id = await system.newSession();
    const { token } = await system.call<{ token: string }>('POST', `/agent/session/${id}/tokens`, { scopes: ['view'] });
    const { page } = await system.open(`#/sessions/${id}?token=${token}`, PHONE);
    const head = page.locator('header.nav');
    await head.getByText('A shared view').waitFor();
    expect(await head.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)).toBe(0);
  });

  test('[U2] a run that does not exist, and a session that is deleted while it is shown, say so', async () => {
    const id = await system.newSession();
    const { page } = await system.open(`#/sessions/${id}/runs/run_none`);
    await page.getByText('unknown_run').waitFor();
    expect(await page.getByText('Loading …').count()).toBe(0);
    await page.goto(`${system.url}/#/sessions/${id}`);
    await page.getByText('The run of your first message').waitFor();
    await system.call('DELETE', `/agent/session/${id}`);
    await page.getByText('unknown_session').waitFor();
    expect(await page.getByText('The connection is lost').count()).toBe(0);
  });

  test('[U4] the session of a workflow takes no message, and leads to its workflow', async () => {
    const { page, faults } = await system.open('#/workflows/data_pipeline');
    await page
      .getByRole('textbox', { name: 'Inputs' })
      .fill('{"orders": [{"item": "pen", "price": 2, "quantity": 3}]}');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByRole('region', { name: 'Timeline' }).getByText('workflow').first().waitFor();
    expect(await page.getByRole('textbox', { name: 'Message' }).count()).toBe(0);
    await page.getByRole('heading', { level: 1 }).getByRole('link').click();
    await page.getByRole('heading', { name: 'data_pipeline' }).waitFor();
    expect(faults).toEqual([]);
  });

  test('[U2] Escape in the message box leaves the details open, and the focus stays in the conversation', async () => {
    const tools = [{ name: 'get_location', description: 'Where the user is', parameters: { type: 'object' } }];
    const { page, faults } = await system.open(`#/sessions/${await system.newSession()}`);
    await page.getByText('Client tools', { exact: true }).click();
    await page.getByRole('textbox', { name: /Tools that you execute/ }).fill(JSON.stringify(tools));
    await say(page, 'use get_location');
    await page.getByRole('textbox', { name: /result/i }).fill('Oslo');
    await page.getByRole('button', { name: 'Send result' }).focus();
    await page.keyboard.press('Enter');
    await conversationOf(page).getByText('Oslo').first().waitFor();
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
    // The button may go before the request to stop is answered.
    await expect.poll(async () => await focused(page)).toBe('TEXTAREA Message');
    expect(faults).toEqual([]);
  });

  test('[U2] what is lost with the connection is loaded afterwards, and the page says only then that it is lost', async () => {
    const { page, faults } = await system.open(`#/sessions/${await system.newSession()}`);
    await say(page, 'wait 2 seconds');
    await waitForAction(page, /echo_1.*running/);
    await page.context().setOffline(true);
    await page.getByText('The connection is lost').waitFor();
    await page.context().setOffline(false);
    await waitForAction(page, /echo_1.*completed/);
    await page.locator('.session-head').getByText('idle').waitFor();
    await expect.poll(() => page.getByText('The connection is lost').count()).toBe(0);
    expect(faults.filter((fault) => !fault.includes('ERR_INTERNET_DISCONNECTED'))).toEqual([]);
  });

  test('[U3] the error of a run that was left is not shown beside another one', async () => {
    const { session_id: id, run_id: first } = await system.execute(late(1));
    const { page } = await system.open(`#/sessions/${id}`);
    await waitForAction(page, /soon.*completed/);
    await say(page, 'echo: hello');
    await waitForAction(page, /echo_1.*completed/);
    const latest = page.url();
    await page.reload();
    await waitForAction(page, /echo_1.*completed/);
    // The earlier run cannot be loaded: its request is lost again and again.
    await page.route(
      ({ search }) => search.includes(first),
      async (route) => await route.abort(),
    );
    await page.goto(`${system.url}/#/sessions/${id}/runs/${first}`);
    await graphOf(page).getByText('Loading …').waitFor();
    await page.goto(latest);
    await waitForAction(page, /echo_1.*completed/);
    await page.goto(`${system.url}/#/sessions/${id}/runs/${first}`);
    await page.getByRole('alert').waitFor();
    await page.goto(latest);
    await waitForAction(page, /echo_1.*completed/);
    expect(await page.getByRole('alert').count()).toBe(0);
  });

  test('[U2] while messages are queued, the run that works is shown', async () => {
    const { page, faults } = await system.open(`#/sessions/${await system.newSession()}`);
    await say(page, 'wait 60 seconds');
    await waitForAction(page, /echo_1.*running/);
    // A message with client tools has a run of its own; other messages are steered into the active run.
    const tools = [{ name: 'get_location', description: 'Where the user is', parameters: { type: 'object' } }];
    await page.getByText('Client tools', { exact: true }).click();
    await page.getByRole('textbox', { name: /Tools that you execute/ }).fill(JSON.stringify(tools));
    await say(page, 'wait 1 second');
    await page.getByText('Queued', { exact: true }).waitFor();
    await waitForAction(page, /echo_1.*running/);
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.locator('.session-head').getByText('idle').waitFor();
    expect(faults).toEqual([]);
  });

  test('[U2] a page that is hidden for long gives its connection back, and goes on when it is shown', async () => {
    const id = await system.newSession();
    const { page, faults } = await system.open();
    const count = openStreams(page);
    await page.clock.install();
    await page.goto(`${system.url}/#/sessions/${id}`);
    await page.reload();
    await expect.poll(count).toBe(1);
    await setHidden(page, true);
    await page.clock.fastForward(21_000);
    await expect.poll(count).toBe(0);
    await system.send(id, 'echo: during the pause');
    await setHidden(page, false);
    await conversationOf(page).getByText('during the pause').nth(1).waitFor();
    await expect.poll(count).toBe(1);
    expect(faults).toEqual([]);
    await page.close();
  });

  test('[U2] earlier messages of a long conversation are loaded above those that are shown', async () => {
    const history = Array.from({ length: 300 }, (_, index) => ({
      role: index % 2 === 0 ? 'user' : 'assistant',
      content: `earlier message ${index} of them`,
    }));
    const id = await system.newSession('assistant', { history });
    const { page, faults } = await system.open(`#/sessions/${id}`);
    const conversation = conversationOf(page);
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
  });

  test.each(['agents', 'manifests', 'manifests/agent/turned', '?agent=turned'])(
    '[U2] text of a manifest does not reorder the page /#/%s',
    async (place) => {
      await system.call(
        'PUT',
        '/manifests/agent/turned',
        `kind: Agent\nversion: "1.0"\nname: turned\nsummary: "safe ${REORDER}evil"\npersona: {agent: You help.}\n`,
      );
      const { page, faults } = await system.open(`#/${place}`);
      await page.getByText('safe [U+202E]evil').first().waitFor();
      expect(faults).toEqual([]);
    },
  );
});
