/** Files of a session in a browser, and requests that no HTTP library sends, with `npm start` (C7). */
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Browser, Page } from 'playwright-core';
import { noChromium, openChromium } from '../support/chromium.ts';
import { sharedPart } from '../support/shared.ts';

let url: string;
let files: string;

async function newSession(): Promise<string> {
  const response = await fetch(`${url}/agent/assistant/session`, { method: 'POST' });
  return ((await response.json()) as { session_id: string }).session_id;
}

beforeAll(async () => {
  url = await sharedPart('system');
  files = `/agent/session/${await newSession()}/files`;
});

/** Asks for `/ran`, which a test sees. */
const SCRIPT = 'fetch("/ran"); alert(1)';
const CONTENTS: Readonly<Record<string, string>> = {
  'page.html': `<!doctype html><img src=/ran onerror="${SCRIPT.replaceAll('"', "'")}"><script>${SCRIPT}</script>`,
  'picture.svg': `<svg xmlns="http://www.w3.org/2000/svg" onload='${SCRIPT}'><script>${SCRIPT}</script></svg>`,
  'page.xhtml': `<html xmlns="http://www.w3.org/1999/xhtml"><script>${SCRIPT}</script></html>`,
  'a.xml': `<?xml version="1.0"?><x xmlns:h="http://www.w3.org/1999/xhtml"><h:script>${SCRIPT}</h:script></x>`,
  'a.js': SCRIPT,
  '<script>.html': `<script>${SCRIPT}</script>`,
};

/** Runs on the page: shows a URL in every kind of element that could run it. */
const EMBED = `async (url) => {
  const made = ['iframe', 'object', 'embed', 'img', 'script'].map(async (tag) => {
    const element = document.createElement(tag);
    element.setAttribute(tag === 'object' ? 'data' : 'src', url);
    const ended = new Promise((resolve) => {
      for (const type of ['load', 'error']) element.addEventListener(type, resolve);
      // A frame whose answer is a download has no event.
      setTimeout(resolve, 500);
    });
    document.body.append(element);
    await ended;
  });
  await Promise.all(made);
}`;

describe.skipIf(noChromium !== null)(`[C7] in Chromium${noChromium === null ? '' : ` (${noChromium})`}`, () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openChromium();
  });
  afterAll(async () => {
    await browser?.close();
  });

  /** A page of the system's own origin, and what scripts on it have done. */
  async function visit(): Promise<{ page: Page; ran: string[] }> {
    const page = await (await browser.newContext({ acceptDownloads: true })).newPage();
    const ran: string[] = [];
    page.on('request', (request) => request.url().endsWith('/ran') && ran.push(request.frame().url()));
    page.on('dialog', (dialog) => {
      ran.push('dialog');
      void dialog.dismiss();
    });
    await page.goto(`${url}/health`);
    return { page, ran };
  }

  test('HTML, SVG, XML and scripts do not run: opened, in frames, as pictures, as scripts', async () => {
    for (const [name, content] of Object.entries(CONTENTS)) {
      const path = `${files}/${encodeURIComponent(name)}`;
      const put = await fetch(`${url}${path}`, { method: 'PUT', body: content });
      expect(put.status).toBe(201);
      const { page, ran } = await visit();
      await page.evaluate(`(${EMBED})(${JSON.stringify(path)})`);
      const download = page.waitForEvent('download');
      await page.goto(`${url}${path}`).catch(() => null);
      expect((await download).suggestedFilename()).toMatch(/\.\w+$/);
      expect([name, ran]).toEqual([name, []]);
      await page.context().close();
    }
  });

  test('nothing runs without the attachment either; on an ordinary page it would', async () => {
    for (const [name, headers] of [
      ['page.html', ['content-disposition']],
      ['picture.svg', ['content-disposition']],
      ['page.html', ['content-disposition', 'content-security-policy', 'content-type']],
    ] as const) {
      const { page, ran } = await visit();
      await page.route(`**/files/${name}`, async (route) => {
        const response = await route.fetch();
        const kept = Object.entries(response.headers()).filter(
          ([header]) => !(headers as readonly string[]).includes(header),
        );
        const type = headers.length > 1 ? { 'content-type': 'text/html' } : {};
        await route.fulfill({ response, headers: { ...Object.fromEntries(kept), ...type } });
      });
      await page.goto(`${url}${files}/${name}`);
      if (headers.length === 1) expect(await page.locator('body').innerText()).toContain('<script>');
      // The last one shows that the test would see a script.
      if (headers.length === 1) expect(ran).toEqual([]);
      else await expect.poll(() => ran.length).toBeGreaterThan(0);
      await page.context().close();
    }
  });
});

/** Sends a request line as it is. @returns the status and the body of the answer */
async function raw(line: string): Promise<[status: number, body: string]> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.write(`${line} HTTP/1.1\r\nHost: ${hostname}:${port}\r\nConnection: close\r\n\r\n`);
  let text = '';
  for await (const chunk of socket.setEncoding('latin1')) text += chunk as string;
  const [head = '', ...body] = text.split('\r\n\r\n');
  return [Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1]), body.join('\r\n\r\n')];
}

test('[C7] paths that no HTTP library sends lead to no file outside, and to no other route with the access of this one', async () => {
  const session = files.split('/')[3] ?? '';
  const body = JSON.stringify({ scopes: ['files'] });
  const issued = await fetch(`${url}/agent/session/${session}/tokens`, { method: 'POST', body });
  const { token } = (await issued.json()) as { token: string };
  for (const [path, status, code] of [
    ['/%2e%2e/transcript', 403, 'forbidden'],
    ['/../transcript', 403, 'forbidden'],
    ['/a/%2E%2e/../transcript', 403, 'forbidden'],
    ['/..\\transcript', 403, 'forbidden'],
    ['/..%2ftranscript', 400, 'invalid_request'],
    ['/..%5ctranscript', 400, 'invalid_request'],
    ['/%00', 400, 'invalid_request'],
    ['/a%0d%0ax', 400, 'invalid_request'],
    ['/%ff', 400, 'invalid_request'],
    ['//x', 400, 'invalid_request'],
    ['/%252e%252e', 404, 'unknown_file'],
  ] as const) {
    const [found, text] = await raw(`GET ${files}${path}?token=${token}`);
    expect([path, found, text.includes(`"code":"${code}"`)]).toEqual([path, status, true]);
  }
});
