/**
 * A headless Chromium for tests, as Debian installs it. Without one, tests skip with a reason; with CI=true, a missing
 * browser is a failure. The headless shell is the same engine without the parts of the desktop browser: tests with
 * it need about half of the processor time.
 */
import { once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { delimiter, join } from 'node:path';
import { build } from 'esbuild';
import { chromium } from 'playwright-core';
import type { Browser, BrowserServer, LaunchOptions, Page } from 'playwright-core';
import { sharedPart } from './shared.ts';

const NAMES = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'];
const folders = (process.env['PATH'] ?? '').split(delimiter);
const path = NAMES.flatMap((name) => folders.map((folder) => join(folder, name))).find(isExecutable);

/** Why tests with a browser are skipped; null: they run. */
export const noChromium =
  path === undefined && process.env['CI'] !== 'true' ? `None of ${NAMES.join(', ')} is installed` : null;

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function launchOptions(): LaunchOptions {
  if (path === undefined)
    throw new Error(`None of ${NAMES.join(', ')} is installed: apt-get install chromium-headless-shell`);
  // Tests may run as root, and in containers with little shared memory.
  return { executablePath: path, args: ['--no-sandbox', '--disable-dev-shm-usage'] };
}

/** Starts a browser of its own; end it with `close()`. */
export async function startChromium(): Promise<Browser> {
  return await chromium.launch(launchOptions());
}

/** Connects to the browser that all files share; `close()` ends the connection, with its pages. */
export async function openChromium(): Promise<Browser> {
  return await chromium.connect(await sharedPart('chromium'));
}

/** The browser that all files share. */
export async function launchServer(): Promise<BrowserServer> {
  return await chromium.launchServer(launchOptions());
}

/** The modules that a file imports and itself as one script for a page; its exports are members of `globalThis[name]`. */
export async function bundleForPage(file: string, name: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [file],
    bundle: true,
    write: false,
    format: 'iife',
    globalName: name,
    platform: 'browser',
    target: 'es2024',
    logLevel: 'silent',
    define: { 'process.env.NODE_ENV': '"production"' },
  });
  return outputFiles[0]?.text ?? '';
}

/** A site with one page that runs a script: an origin of its own. */
export interface PageSite extends AsyncDisposable {
  readonly origin: string;
}

interface PageSiteOptions {
  readonly isModule?: boolean;
  /** Default: any free one. */
  readonly port?: number;
  /** What its server answers besides the page, by path. */
  readonly answers?: Readonly<Record<string, () => Promise<string>>>;
}

export async function startPageSite(script: string, options: PageSiteOptions = {}): Promise<PageSite> {
  const { port = 0, answers = {}, isModule = false } = options;
  const type = isModule ? 'module' : 'text/javascript';
  const html = `<!doctype html><div id="root"></div><script type="${type}" src="/page.js"></script>`;
  const server = createServer((request, response) => {
    const answer = answers[request.url ?? ''];
    if (answer !== undefined) {
      void answer().then(
        (text) => response.end(text),
        (fault: unknown) => response.writeHead(500).end(String(fault)),
      );
    } else if (request.url === '/page.js') response.setHeader('content-type', 'text/javascript').end(script);
    else response.setHeader('content-type', 'text/html').end(html);
  }).listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}

/** Opens a page of the site in a new profile. Its uncaught errors are in `faults`. */
export async function openPage(browser: Browser, site: PageSite): Promise<{ page: Page; faults: string[] }> {
  const page = await browser.newPage();
  const faults: string[] = [];
  page.on('pageerror', ({ message }) => faults.push(message));
  await page.goto(site.origin);
  return { page, faults };
}
