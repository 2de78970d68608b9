/**
 * `npm run bench:console`: how smooth the console stays while runs of growing size happen, by Chromium's own trace. Times of
 * tasks are those of the page's main thread without what other processes took. The first row is the page without a run.
 */
import { startScriptedLlm } from '../cli/scripted-llm/server.ts';
import type { SeenRequest, ScriptedReply } from '../cli/scripted-llm/server.ts';
import { traced } from '../test/support/browser-trace.ts';
import type { BrowserTrace } from '../test/support/browser-trace.ts';
import { startChromium } from '../test/support/chromium.ts';
import { newPage, say, showConsole, startConsoleSystem } from '../test/support/console.ts';
import type { ConsoleSystem } from '../test/support/console.ts';
import { LARGE_RUN, largeRunModel } from '../test/support/large-run.ts';
import { percentile, table, writeSection } from './report.ts';

const GENERATIONS = [1, 2, LARGE_RUN.generations] as const;
const IDLE_MS = 3_000;
const INTRO =
  'Milliseconds. A task is a piece of work of the main thread of the page; input waits while it runs, and above 100 ms people notice. A run of 2,000 actions is the largest that is allowed.';

let model: (request: SeenRequest) => ScriptedReply = largeRunModel();
const llm = await startScriptedLlm((request) => model(request));
const browser = await startChromium();
let system: ConsoleSystem | null = null;
try {
  system = await startConsoleSystem({ LLM_BASE_URL: llm.baseUrl, LLM_MODEL: 'scripted' });
  const rows = [await idle(system.url)];
  for (const generations of GENERATIONS) rows.push(...(await measure(system.url, generations)));
  const head = ['page', 'tasks', 'longest task', '99 %', 'frames', 'gap between frames, 95 %', 'elements'];
  writeSection('console', 'npm run bench:console', `${INTRO}\n\n${table(head, rows)}`);
  console.log(table(head, rows));
} finally {
  await browser.close();
  await system?.[Symbol.asyncDispose]();
  await llm[Symbol.asyncDispose]();
}

function rowOf(name: string, { tasksMs, framesMs }: BrowserTrace, elements: number): string[] {
  return [
    name,
    String(tasksMs.length),
    (tasksMs[0] ?? 0).toFixed(0),
    percentile(tasksMs, 0.99).toFixed(1),
    String(framesMs.length),
    percentile(framesMs, 0.95).toFixed(0),
    String(elements),
  ];
}

async function newSession(url: string): Promise<string> {
  const response = await fetch(`${url}/agent/assistant/session`, { method: 'POST', body: '{}' });
  return ((await response.json()) as { session_id: string }).session_id;
}

async function idle(url: string): Promise<string[]> {
  const { page } = await showConsole(await newPage(browser), `${url}/#/sessions/${await newSession(url)}`);
  const trace = await traced(browser, page, async () => await page.waitForTimeout(IDLE_MS));
  const row = rowOf('no run', trace, await page.locator('*').count());
  await page.close();
  return row;
}

async function measure(url: string, generations: number): Promise<string[][]> {
  model = largeRunModel(generations);
  const actions = generations * LARGE_RUN.actionsPerGeneration;
  const { page } = await showConsole(await newPage(browser), `${url}/#/sessions/${await newSession(url)}`);
  const done = async (): Promise<void> =>
    await page.getByRole('region', { name: 'Conversation' }).getByText('All actions are done.').first().waitFor();
  const live = await traced(browser, page, async () => {
    await say(page, 'do all of it');
    await done();
  });
  const liveElements = await page.locator('*').count();
  const reloaded = await traced(browser, page, async () => {
    await page.reload();
    await done();
    await page.getByRole('region', { name: 'Graph' }).getByRole('button').first().waitFor();
  });
  const name = `${actions.toLocaleString('en')} actions`;
  const rows = [
    rowOf(`${name}, live`, live, liveElements),
    rowOf(`${name}, loaded`, reloaded, await page.locator('*').count()),
  ];
  await page.close();
  return rows;
}
