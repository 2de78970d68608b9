/** The console in Chromium, on a real system with the demo model and a runner (U1 to U5). */
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { PAYLOADS } from '../console/payloads.ts';
import { noChromium } from '../support/chromium.ts';
import {
  approveIn,
  axeViolations,
  conversationOf,
  graphOf,
  isTooWide,
  say,
  waitForAction,
} from '../support/console.ts';
import { useConsole } from '../support/use-console.ts';
import { startCuttingProxy } from '../support/cutting-proxy.ts';

const system = useConsole();

test('[U1] the page is static, has a strict policy, and answers for no path of the API', async () => {
  const page = await fetch(`${system.url}/`);
  expect(page.headers.get('content-type')).toContain('text/html');
  const policy = page.headers.get('content-security-policy') ?? '';
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain("script-src 'self'");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).not.toContain('unsafe');
  for (const path of ['/nothing', '/agent', '/session', '/assets/nothing.js', '/agents/none/prompt']) {
    const response = await fetch(`${system.url}${path}`);
    expect([path, response.status]).toEqual([path, 404]);
    expect(response.headers.get('content-type')).toContain('application/problem+json');
  }
});

describe.skipIf(noChromium !== null)(`in a browser${noChromium === null ? '' : `: ${noChromium}`}`, () => {
  test('[U2] [U3] the tour shows parallel work, a dependency in one generation, and an approval', async () => {
    const { page, faults, requests } = await system.open();
    await page.getByRole('button', { name: 'Run it: Parallel work' }).click();
    const tour = page.getByRole('complementary', { name: 'Tour' });
    await tour.getByText('3 of 3 actions started before the model had finished.').waitFor();
    await waitForAction(page, /python.*completed/);
    await page
      .getByRole('region', { name: 'Timeline' })
      .getByText(/lower bound/i)
      .first()
      .waitFor();

    await tour.getByRole('button', { name: 'Next: A dependency, one generation' }).click();
    await tour.getByText('The model was called once.').waitFor();
    await waitForAction(page, /python_summary.*completed/);

    await tour.getByRole('button', { name: 'Next: Approval' }).click();
    await approveIn(page).click();
    await tour.getByText('The action ran after your approval').waitFor();
    await conversationOf(page).getByText('12586269025').first().waitFor();
    expect(faults).toEqual([]);
    expect(requests.filter((url) => !url.startsWith(system.url))).toEqual([]);
  });

  test('[U2] [C3] a client tool is executed by hand; a reload in the middle shows the whole run, and its end', async () => {
    const { page, faults } = await system.open(`#/sessions/${await system.newSession()}`);
    const tools = [{ name: 'get_location', description: 'Where the user is', parameters: { type: 'object' } }];
    await page.getByText('Client tools', { exact: true }).click();
    await page.getByRole('textbox', { name: /Tools that you execute/ }).fill(JSON.stringify(tools));
    await say(page, 'use get_location and compute 2**64 in python at the same time');
    await page.getByRole('textbox', { name: /result/i }).waitFor();
    await page.reload();
    const conversation = conversationOf(page);
    await conversation.getByText('use get_location and compute').first().waitFor();
    await waitForAction(page, /python_1.*completed/);
    await page.getByRole('textbox', { name: /result/i }).fill('{"city": "Zürich"}');
    await page.getByRole('button', { name: 'Send result' }).click();
    await conversation.getByText('Zürich').first().waitFor();
    await conversation.getByText('18446744073709551616').first().waitFor();
    expect(faults).toEqual([]);
  });

  test('[U2] a message with an image and a file; the image is shown through a blob', async () => {
    const { page, faults } = await system.open(`#/sessions/${await system.newSession()}`);
    const png = Buffer.from(
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
      'base64',
    );
    await page.locator('input[type=file]').setInputFiles([
      { name: 'pixel.png', mimeType: 'image/png', buffer: png },
      { name: '<img src=x onerror=alert(1)>.txt', mimeType: 'text/plain', buffer: Buffer.from('hello') },
    ]);
    await say(page, 'what are these files?');
    const conversation = conversationOf(page);
    await expect.poll(() => conversation.locator('img[src^="blob:"]').count()).toBeGreaterThan(0);
    await conversation.getByText(`image/png, ${png.length} bytes`).waitFor();
    expect(faults).toEqual([]);
  });

  test('[U2] two tabs of one session show the same', async () => {
    const id = await system.newSession();
    const one = await system.open(`#/sessions/${id}`);
    const other = await system.open(`#/sessions/${id}`);
    await one.page.getByRole('textbox', { name: 'Message' }).waitFor();
    await other.page.getByRole('textbox', { name: 'Message' }).waitFor();
    await say(one.page, 'compute 7**30 in python');
    for (const { page } of [one, other]) {
      const conversation = conversationOf(page);
      await conversation.getByText('22539340290692258087863249').first().waitFor();
      await conversation.getByText('compute 7**30 in python').first().waitFor();
    }
    await say(other.page, 'compute 11**30 in python');
    await one.page
      .getByText(String(11n ** 30n))
      .first()
      .waitFor();
    expect([...one.faults, ...other.faults]).toEqual([]);
  });

  test('[U2] a connection that is cut often loses nothing, and says that it is lost', async () => {
    await using proxy = await startCuttingProxy({
      target: system.url,
      eventsOf: ({ path }) => (path.includes('/events') ? 3 : null),
    });
    const { page } = await system.open(`#/sessions/${await system.newSession()}`, { url: proxy.url });
    await say(page, 'compute 2**200 in python and list the files in shell at the same time, then sum it up');
    const conversation = conversationOf(page);
    await conversation.getByText('1606938044258990275541962092341162602522202993782792835301376').first().waitFor();
    await waitForAction(page, /python_summary.*completed/);
    expect(proxy.cuts()).toBeGreaterThan(2);
    await page.context().setOffline(true);
    await page.getByText('The connection is lost', { exact: false }).waitFor();
    await page.context().setOffline(false);
    await expect.poll(() => page.getByText('The connection is lost', { exact: false }).count()).toBe(0);
  });

  test('[U3] an action opens with its parameters and output, and the scrubber replays; both are in the address', async () => {
    const { session_id: id } = await system.execute(
      '<action type="tool" id="one" mode="async">{"name":"echo","parameters":{"message":"first","delay_ms":300}}</action>' +
        '<action type="tool" id="two" mode="async">{"name":"echo","parameters":{"message":"$one.message"},"depends_on":["one"]}</action>' +
        '<response final="true">$two.message</response>',
    );
    const { page, faults } = await system.open(`#/sessions/${id}`);
    const graph = graphOf(page);
    await graph.getByRole('button', { name: /two.*completed/ }).click();
    const details = page.getByRole('complementary', { name: 'Action two' });
    await details.getByText('first', { exact: true }).first().waitFor();
    expect(page.url()).toContain('action=1.two');
    await page.keyboard.press('Escape');
    const slider = page.getByRole('slider');
    await slider.focus();
    await page.keyboard.press('Home');
    await expect.poll(() => page.url()).toContain('at=');
    await expect.poll(() => graph.getByRole('button', { name: /completed/ }).count()).toBe(0);
    await page.reload();
    await expect.poll(async () => Number(await page.getByRole('slider').getAttribute('max'))).toBeGreaterThan(5);
    expect(await graph.getByRole('button', { name: /completed/ }).count()).toBe(0);
    await page.getByRole('slider').focus();
    await page.keyboard.press('End');
    await waitForAction(page, /two.*completed/);
    expect(faults).toEqual([]);
  });

  test('[U5] the playground plans as one types, and runs', async () => {
    const { page, faults } = await system.open('#/playground');
    const text =
      '<action type="tool" id="a" mode="async">{"name":"echo","parameters":{"message":"x"}}</action>' +
      '<action type="tool" id="b" mode="async">{"name":"echo","parameters":{"message":"$a.message"}}</action>' +
      '<action type="tool" id="c">{"name":"nothing_like_it","parameters":{}}</action>' +
      '<response final="true">$b.message</response>';
    await page.getByRole('textbox', { name: 'Protocol text' }).fill(text);
    await page.getByText('nothing_like_it', { exact: false }).nth(1).waitFor();
    await page.getByRole('button', { name: /^Run/ }).click();
    await waitForAction(page, /\bb\b.*completed/);
    expect(faults).toEqual([]);
  });

  test('[U4] a pasted manifest is validated as one types', async () => {
    const { page, faults } = await system.open('#/manifests');
    await page.getByRole('textbox', { name: 'Manifest' }).fill('kind: Tool\nname: mine\nsumary: typo\n');
    await page.getByText('sumary', { exact: false }).nth(1).waitFor();
    expect(faults).toEqual([]);
  });

  const PLACES = [
    '',
    '#/sessions',
    '#/sessions?list=runs',
    '#/approvals',
    '#/agents',
    '#/agents/assistant',
    '#/workflows',
    '#/manifests',
    '#/manifests/agent/assistant',
    '#/playground',
    '#/system',
  ];

  const LAPTOP = { width: 1280, height: 800 };
  const PHONE = { width: 360, height: 740 };

  /** Nothing is cut off, also if text has twice its size. */
  async function fitsLaptop(page: Page): Promise<void> {
    expect(await isTooWide(page)).toBe(false);
    await page.evaluate(() => (document.documentElement.style.fontSize = '200%'));
    expect(await isTooWide(page)).toBe(false);
    await page.evaluate(() => (document.documentElement.style.fontSize = ''));
  }

  async function onDarkPhone(page: Page): Promise<void> {
    await page.setViewportSize(PHONE);
    await page.emulateMedia({ colorScheme: 'dark' });
  }

  describe('[U1] wide and light, with text at 200 %, and dark on a phone', () => {
    test.each(PLACES)('axe finds nothing at /%s, and nothing is cut off', async (hash) => {
      const { page, faults } = await system.open(hash, { viewport: LAPTOP });
      await page.getByRole('heading', { level: 1 }).waitFor();
      await expect.poll(() => page.getByText('Loading …').count()).toBe(0);
      expect(await axeViolations(page)).toEqual([]);
      await fitsLaptop(page);
      await onDarkPhone(page);
      expect(await axeViolations(page)).toEqual([]);
      expect(await isTooWide(page)).toBe(false);
      expect(faults).toEqual([]);
    });

    test('axe finds nothing in a session with a run, an open approval and a selected action', async () => {
      const id = await system.newSession('careful_assistant');
      const { page, faults } = await system.open(`#/sessions/${id}`, { viewport: LAPTOP });
      await say(page, 'compute 2**99 in python');
      await approveIn(page).waitFor();
      await graphOf(page)
        .getByRole('button', { name: /python_1/ })
        .click();
      await page.getByRole('complementary', { name: 'Action python_1' }).waitFor();
      expect(await axeViolations(page)).toEqual([]);
      await fitsLaptop(page);
      await onDarkPhone(page);
      for (const side of ['Chat', 'Run']) {
        await page.getByRole('button', { name: side, exact: true }).click();
        expect(await axeViolations(page)).toEqual([]);
        expect(await isTooWide(page)).toBe(false);
      }
      expect(faults).toEqual([]);
    });
  });

  test('[U1] by keyboard alone: a message, its run, an action, and back', async () => {
    const { page, faults } = await system.open();
    const reach = async (name: string | RegExp, role: 'button' | 'textbox' | 'link'): Promise<void> => {
      const target = page.getByRole(role, { name }).first();
      await target.waitFor();
      for (let presses = 0; presses < 80; presses += 1) {
        await page.keyboard.press('Tab');
        if (await target.evaluate((element) => element === document.activeElement)) return;
      }
      throw new Error(`Tab does not reach ${String(name)}`);
    };
    await reach('Message', 'textbox');
    await page.keyboard.type('compute 5**40 in python');
    await page.keyboard.press('Enter');
    await page.getByText('9094947017729282379150390625').first().waitFor();
    await reach(/python_1/, 'button');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.url()).toContain('action=1.');
    await page.keyboard.press('Escape');
    await expect.poll(() => page.url()).not.toContain('action=');
    expect(faults).toEqual([]);
  });

  test('[U2] hostile text of a model, a tool and a name is inert, and loads nothing from elsewhere', async () => {
    const quoted = PAYLOADS.map(({ text }) => text.replaceAll('</response>', '').replaceAll('$', '$$$$'));
    const body = JSON.stringify({ name: 'echo', parameters: { message: quoted.join('\n') } }).replaceAll(
      '<',
      String.raw`\u003c`,
    );
    const { session_id: id } = await system.execute(
      `<action type="tool" id="payload" mode="async">${body}</action><thought>${quoted.join('\n\n').replaceAll('<', '&lt;')}</thought>` +
        `<response final="true">${quoted.join('\n\n---\n\n')}\n\n$payload.message</response>`,
    );
    const { page, faults, requests } = await system.open(`#/sessions/${id}?action=1.payload`);
    await expect.poll(() => conversationOf(page).innerText()).toContain('alert');
    const unsafe = await page.evaluate(() =>
      [...document.querySelectorAll('main *')].flatMap((element) => [
        ...(/^(script|iframe|object|embed|form|base|meta|link|style)$/i.test(element.tagName) &&
        element.closest('form.composer') === null &&
        !(element instanceof HTMLFormElement)
          ? [element.tagName]
          : []),
        ...[...element.attributes].flatMap(({ name, value }) =>
          /^on/i.test(name) ||
          (/^(href|src|action|xlink:href)$/i.test(name) && !/^(https?:|mailto:|#|blob:|\/icon\.svg)/i.test(value))
            ? [`${element.tagName} ${name}=${value}`]
            : [],
        ),
      ]),
    );
    expect(unsafe).toEqual([]);
    const links = await page.locator('main a[href^=http]').all();
    expect(links.length).toBeGreaterThan(0);
    for (const link of links) {
      expect(await link.getAttribute('rel')).toContain('noopener');
    }
    expect(requests.filter((url) => !url.startsWith(system.url) && !url.startsWith('blob:'))).toEqual([]);
    expect(faults).toEqual([]);
  });
});
