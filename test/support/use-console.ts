/** A system with the console, and a browser, for all tests of a file. */
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';
import { noChromium, startChromium } from './chromium.ts';
import { startConsoleSystem } from './console.ts';
import type { ConsoleSystem } from './console.ts';

export interface ConsoleOfFile {
  readonly url: string;
  readonly browser: Browser;
}

/**
 * Call it at the top of the file, and read the members within tests.
 *
 * @param vars of the system, or what gets them before the first test
 * @param options.hasRunner whether python and shell actions are needed
 */
export function useConsole(
  vars: Readonly<Record<string, string>> | (() => Promise<Readonly<Record<string, string>>>),
  options: { readonly hasRunner: boolean },
): ConsoleOfFile {
  let system: ConsoleSystem | null = null;
  let browser: Browser | null = null;
  beforeAll(async () => {
    system = await startConsoleSystem(typeof vars === 'function' ? await vars() : vars, options);
    if (noChromium === null) browser = await startChromium();
  });
  afterAll(async () => {
    await browser?.close();
    await system?.[Symbol.asyncDispose]();
  });
  const only = <T>(value: T | null): T => {
    if (value === null) throw new Error('it has not been started');
    return value;
  };
  return {
    get url() {
      return only(system).url;
    },
    get browser() {
      return only(browser);
    },
  };
}
