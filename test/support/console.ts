/** Opens the console of a system in Chromium, and looks at it as its users and its attackers do. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Locator, Page } from 'playwright-core';
import { freePort } from '../../cli/system/services.ts';
import { startSystem } from '../../cli/system/system.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

/** A system with a state folder of its own, which is removed at its end. */
export interface ConsoleSystem extends AsyncDisposable {
  readonly url: string;
}

/** Without a runner. */
export async function startConsoleSystem(vars: Readonly<Record<string, string>>): Promise<ConsoleSystem> {
  const folder = mkdtempSync(join(tmpdir(), 'cortex-console-'));
  const system = await startSystem({
    port: await freePort(),
    runnerPort: 0,
    stateDir: folder,
    vars,
    ownRunner: false,
    progress: () => undefined,
  });
  return {
    url: system.url,
    async [Symbol.asyncDispose]() {
      await system.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export interface ConsolePage {
  readonly page: Page;
  /** Uncaught errors, and what the browser has complained about: also blocked scripts, styles and connections. */
  readonly faults: string[];
  /** Addresses of all requests so far. */
  readonly requests: string[];
  /** Everything that the page has written to the browser's console. */
  readonly log: string[];
}

/** What tests listen to. */
const HEARD = ['pageerror', 'console', 'dialog', 'request', 'requestfinished', 'requestfailed'] as const;

/** An empty page with a profile of its own. */
export async function newPage(browser: Browser): Promise<Page> {
  const page = await browser.newPage({ locale: 'en-GB', reducedMotion: 'reduce' });
  // Only ends a test that hangs: a busy machine may take long.
  page.setDefaultTimeout(120_000);
  return page;
}

export interface PageOptions {
  readonly viewport?: { readonly width: number; readonly height: number };
  readonly colorScheme?: 'light' | 'dark';
}

/** @param address of the console, with the view, such as `#/agents` */
export async function showConsole(page: Page, address: string, options: PageOptions = {}): Promise<ConsolePage> {
  const { viewport = { width: 1280, height: 720 }, colorScheme = 'light' } = options;
  await page.setViewportSize(viewport);
  await page.emulateMedia({ colorScheme });
  const opened: ConsolePage = { page, faults: [], requests: [], log: [] };
  page.on('pageerror', ({ message }) => opened.faults.push(message));
  page.on('console', (message) => {
    opened.log.push(message.text());
    // Answers with an error status are shown in the page.
    const isStatus = message.text().startsWith('Failed to load resource');
    if (message.type() === 'error' && !isStatus) opened.faults.push(message.text());
  });
  page.on('request', (request) => opened.requests.push(request.url()));
  await page.goto(address);
  return opened;
}

/** Ends what a test did in the page: a page costs less than half when it is used again. @param url of the system */
export async function leaveConsole(page: Page, url: string): Promise<void> {
  for (const event of HEARD) page.removeAllListeners(event);
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await page.goto(`${url}/icon.svg`);
}

interface AxeResult {
  readonly violations: readonly {
    readonly id: string;
    readonly help: string;
    readonly nodes: readonly { readonly target: readonly string[]; readonly failureSummary?: string }[];
  }[];
}

/** What axe finds against WCAG 2.2 AA in the page as it is now, one line for each element. */
export async function axeViolations(page: Page): Promise<string[]> {
  if (await page.evaluate(() => !('axe' in globalThis))) await page.evaluate(AXE);
  const { violations } = await page.evaluate<AxeResult, readonly string[]>(
    async (rules) =>
      await (globalThis as unknown as { axe: { run: (options: object) => Promise<AxeResult> } }).axe.run({
        runOnly: { type: 'tag', values: rules },
        resultTypes: ['violations'],
      }),
    RULES,
  );
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${help}: ${target.join(' ')}: ${failureSummary ?? ''}`),
  );
}

/** Whether the page is wider than its window, so that one must scroll sideways. */
export async function isTooWide(page: Page): Promise<boolean> {
  return await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
}

/** Sends the message and waits for the end of its run. */
export async function say(page: Page, text: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Message' }).fill(text);
  await page.getByRole('button', { name: 'Send', exact: true }).click();
}

/** The graph of the run that is shown. */
export function graphOf(page: Page): Locator {
  return page.getByRole('region', { name: 'Graph' });
}

/** The conversation of the session that is shown. */
export function conversationOf(page: Page): Locator {
  return page.getByRole('region', { name: 'Conversation' });
}

/** The buttons that approve, in a page or a card. */
export function approveIn(place: Page | Locator): Locator {
  return place.getByRole('button', { name: 'Approve', exact: true });
}

/** Waits until the graph has an action that looks like this: `/echo_1.*completed/`. */
export async function waitForAction(page: Page, action: RegExp): Promise<void> {
  await graphOf(page).getByRole('button', { name: action }).first().waitFor();
}

/** Makes the page hidden, or visible again: headless pages are never hidden. */
export async function setHidden(page: Page, isHidden: boolean): Promise<void> {
  await page.evaluate((hidden) => {
    Object.defineProperty(document, 'hidden', { configurable: true, value: hidden });
    document.dispatchEvent(new Event('visibilitychange'));
  }, isHidden);
}

/** The element that has the focus, as its tag and its name. */
export async function focused(page: Page): Promise<string> {
  return await page.evaluate(() => {
    const { tagName, ariaLabel, id } = document.activeElement ?? document.body;
    return `${tagName} ${ariaLabel ?? id}`;
  });
}
