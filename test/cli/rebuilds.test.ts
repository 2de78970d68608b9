/** Rebuilds of the Worker, as wrangler announces them (S10). */
import { expect, test } from 'vitest';
import { Rebuilds } from '../../cli/system/rebuilds.ts';
import { startLimits } from '../../cli/system/start-limits.ts';

const BUILD = '[custom build] Running: node cli/main.ts build';
const START = '⎔ Starting local server...';
const RELOAD = '⎔ Reloading local server...';
const READY = '⎔ Local server updated and ready';
const ERROR = '✘ [ERROR] Error reloading local server';

function after(...lines: readonly string[]): Rebuilds {
  const rebuilds = new Rebuilds(() => 0);
  for (const line of lines) rebuilds.read(line);
  return rebuilds;
}

test.each<[lines: string[], phase: string | null, reloads: number]>([
  [[], null, 0],
  [[BUILD], 'building', 0],
  [[BUILD, START], null, 0],
  [[BUILD, RELOAD], 'reloading', 0],
  [[BUILD, RELOAD, READY], null, 1],
  // a burst of edits: the next build begins, or the next reload is announced, before the first one has ended
  [[BUILD, RELOAD, BUILD], 'reloading', 0],
  [[BUILD, RELOAD, BUILD, READY], 'building', 1],
  [[RELOAD, RELOAD, READY], 'reloading', 1],
  [[RELOAD, RELOAD, READY, READY], null, 2],
  // a reload that fails leaves no process
  [[BUILD, RELOAD, ERROR], null, 0],
  [[BUILD, ERROR], 'building', 0],
  [['log of a tool: ⎔ Reloading local server...'], null, 0],
])('[S10] after %j the phase is %s with %i reloads', (lines, phase, reloads) => {
  const rebuilds = after(...lines);
  expect(rebuilds.phase).toBe(phase);
  expect(rebuilds.reloads).toBe(reloads);
});

test('[S10] a rebuild without an end counts for a limited time, and another process has none', () => {
  let now = 0;
  const rebuilds = new Rebuilds(() => now);
  rebuilds.read(RELOAD);
  now = startLimits.rebuildMs;
  expect(rebuilds.phase).toBe('reloading');
  now += 1;
  expect(rebuilds.phase).toBeNull();
  // the next one is not mixed with it
  rebuilds.read(RELOAD);
  rebuilds.read(READY);
  expect(rebuilds.phase).toBeNull();
  rebuilds.read(BUILD);
  rebuilds.reset();
  expect(rebuilds.phase).toBeNull();
});
