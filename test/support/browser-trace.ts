/** Chromium's own trace of a page: how long its main thread was busy at once, and how often it painted. */
import type { Browser, Page } from 'playwright-core';

interface TraceEvent {
  readonly name: string;
  readonly ph: string;
  readonly pid: number;
  readonly tid: number;
  readonly ts: number;
  /** Microseconds of the clock, and of the thread itself without what other processes took. */
  readonly dur?: number;
  readonly tdur?: number;
  readonly args?: { readonly name?: string };
}

export interface BrowserTrace {
  /** Milliseconds of the thread for each task of the page's main thread, longest first. */
  readonly tasksMs: readonly number[];
  /** Milliseconds between frames that were drawn, longest first. */
  readonly framesMs: readonly number[];
}

const CATEGORIES = [
  'toplevel',
  'devtools.timeline',
  'disabled-by-default-devtools.timeline',
  'disabled-by-default-devtools.timeline.frame',
  '__metadata',
];

/** Traces the page while `work` runs. Another page of the same browser must not be busy meanwhile. */
export async function traced(browser: Browser, page: Page, work: () => Promise<void>): Promise<BrowserTrace> {
  await browser.startTracing(page, { categories: CATEGORIES });
  await work();
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString()) as { traceEvents: TraceEvent[] };
  const mains = new Set(
    traceEvents
      .filter(({ name, args }) => name === 'thread_name' && args?.name === 'CrRendererMain')
      .map(({ pid, tid }) => `${pid} ${tid}`),
  );
  const onMain = traceEvents.filter(({ pid, tid }) => mains.has(`${pid} ${tid}`));
  const tasks = onMain.filter(({ name, ph }) => ph === 'X' && /(^|::)RunTask$/.test(name));
  const frames = onMain.filter(({ name }) => name === 'Commit' || name === 'Paint').map(({ ts }) => ts);
  const gaps = frames
    .sort((a, b) => a - b)
    .flatMap((ts, at) => (at === 0 ? [] : [(ts - (frames[at - 1] ?? ts)) / 1_000]));
  const longestFirst = (values: number[]): number[] => values.sort((a, b) => b - a);
  return {
    tasksMs: longestFirst(tasks.map(({ tdur, dur }) => (tdur ?? dur ?? 0) / 1_000)),
    framesMs: longestFirst(gaps.filter((gap) => gap > 1)),
  };
}
