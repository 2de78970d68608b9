/** [U3] The console with the largest run that is allowed: it stays smooth, live and after a reload. */
import type { Page } from 'playwright-core';
import { afterAll, describe, expect, test } from 'vitest';
import { startScriptedLlm } from '../../cli/scripted-llm/server.ts';
import type { ScriptedLlm } from '../../cli/scripted-llm/server.ts';
import { traced } from '../support/browser-trace.ts';
import { noChromium, startChromium } from '../support/chromium.ts';
import { conversationOf, graphOf, newPage, say, showConsole } from '../support/console.ts';
import { useConsole } from '../support/use-console.ts';
import { LARGE_RUN, largeRunModel } from '../support/large-run.ts';

/** Thread time, so that what else the machine does is not counted. */
const LONGEST_TASK_MS = 100;
/** Elements of the page: far fewer than actions, because only what is visible is drawn. */
const MOST_ELEMENTS = 3_000;

let llm: ScriptedLlm;
const system = useConsole(async () => {
  llm = await startScriptedLlm(largeRunModel());
  return { LLM_BASE_URL: llm.baseUrl, LLM_MODEL: 'scripted' };
});

afterAll(async () => await llm?.[Symbol.asyncDispose]());

async function elements(page: Page): Promise<number> {
  return await page.evaluate(() => document.querySelectorAll('*').length);
}

describe.skipIf(noChromium !== null)(`in a browser${noChromium === null ? '' : `: ${noChromium}`}`, () => {
  test('[U3] a run of 2,000 actions: no long task, live and after a reload, in the graph and the timeline', async () => {
    const response = await fetch(`${system.url}/agent/assistant/session`, { method: 'POST', body: '{}' });
    const { session_id: id } = (await response.json()) as { session_id: string };
    // The trace is of the whole browser.
    await using browser = await startChromium();
    const { page, faults } = await showConsole(await newPage(browser), `${system.url}/#/sessions/${id}`);
    await page.getByRole('textbox', { name: 'Message' }).waitFor();
    const live = await traced(browser, page, async () => {
      await say(page, 'do all of it');
      await conversationOf(page).getByText('All actions are done.').first().waitFor();
    });
    expect(live.tasksMs.length).toBeGreaterThan(100);
    expect(live.tasksMs[0]).toBeLessThan(LONGEST_TASK_MS);
    expect(await elements(page)).toBeLessThan(MOST_ELEMENTS);

    await page.reload();
    const graph = graphOf(page);
    await graph
      .getByRole('button', { name: /g8a/ })
      .or(graph.getByRole('button', { name: /g1a/ }))
      .first()
      .waitFor();
    const used = await traced(browser, page, async () => {
      await graph.getByRole('button', { name: /fit/i }).click();
      await page.mouse.move(900, 300);
      for (let turns = 0; turns < 20; turns += 1) await page.mouse.wheel(0, 400);
      const slider = page.getByRole('slider');
      await slider.focus();
      await page.keyboard.press('Home');
      for (let presses = 0; presses < 10; presses += 1) await page.keyboard.press('PageUp');
      await page.keyboard.press('End');
    });
    expect(used.tasksMs[0]).toBeLessThan(LONGEST_TASK_MS);
    expect(await elements(page)).toBeLessThan(MOST_ELEMENTS);
    await page.getByText(String(LARGE_RUN.actions).replace('2000', '2,000')).first().waitFor();
    expect(faults).toEqual([]);
    await page.close();
  });
});
