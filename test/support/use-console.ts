/** A system with the console, and a browser, for the tests of a file. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { noChromium, openChromium } from './chromium.ts';
import { leaveConsole, newPage, showConsole, startConsoleSystem } from './console.ts';
import type { ConsolePage, ConsoleSystem, PageOptions } from './console.ts';
import { sharedPart } from './shared.ts';

export interface ConsoleOfFile {
  readonly url: string;
  /**
   * The console in a page that no other test uses at the same time. After the test, others use the page: a test that has
   * changed its clock closes it.
   *
   * @param hash the view, such as `#/agents`
   * @param options `url` if it is not the system's own
   */
  readonly open: (hash?: string, options?: PageOptions & { readonly url?: string }) => Promise<ConsolePage>;
  /** A request that succeeds. @param body is sent as JSON; a string as it is. @returns the parsed answer */
  readonly call: <T>(method: string, path: string, body?: object | string) => Promise<T>;
  /** @returns its id */
  readonly newSession: (agent?: string, more?: object) => Promise<string>;
  /** Sends a message and waits for the end of its run, or until it waits. */
  readonly send: (sessionId: string, content: string) => Promise<void>;
  /** Runs protocol text as if a model had written it, until it ends. */
  readonly execute: (text: string) => Promise<{ readonly session_id: string; readonly run_id: string }>;
}

/**
 * Call it at the top of the file, and read the members within tests.
 *
 * @param vars of a system that this file has for itself, or what gets them before the first test. Default: the system that
 *   the files share, with the demo model and a runner
 */
export function useConsole(
  vars?: Readonly<Record<string, string>> | (() => Promise<Readonly<Record<string, string>>>),
): ConsoleOfFile {
  let system: { readonly url: string } | null = null;
  let own: ConsoleSystem | null = null;
  let browser: Browser | null = null;
  const free: Page[] = [];
  const used: Page[] = [];
  beforeAll(async () => {
    if (vars !== undefined) own = await startConsoleSystem(typeof vars === 'function' ? await vars() : vars);
    system = own ?? { url: await sharedPart('system') };
    if (noChromium === null) browser = await openChromium();
  });
  afterEach(async () => {
    for (const page of used.splice(0)) {
      if (page.isClosed()) continue;
      await leaveConsole(page, only(system).url);
      free.push(page);
    }
  });
  afterAll(async () => {
    await browser?.close();
    await own?.[Symbol.asyncDispose]();
  });
  const only = <T>(value: T | null): T => {
    if (value === null) throw new Error('it has not been started');
    return value;
  };
  const call = async <T>(method: string, path: string, body?: object | string): Promise<T> => {
    const sent = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) };
    const response = await fetch(`${only(system).url}${path}`, { method, ...sent });
    const text = await response.text();
    expect([path, text, response.status < 300]).toEqual([path, text, true]);
    return (text === '' ? null : JSON.parse(text)) as T;
  };
  return {
    get url() {
      return only(system).url;
    },
    async open(hash = '', { url = only(system).url, ...options } = {}) {
      const page = free.pop() ?? (await newPage(only(browser)));
      used.push(page);
      return await showConsole(page, `${url}/${hash}`, options);
    },
    call,
    newSession: async (agent = 'assistant', more = {}) =>
      (await call<{ session_id: string }>('POST', `/agent/${agent}/session`, more)).session_id,
    send: async (id, content) => await call('POST', `/agent/session/${id}/message`, { content, stream: false }),
    execute: async (text) => await call('POST', '/execute/direct', { protocol_text: text, stream: false }),
  };
}
