/** Client tools in manifests: their time-out, and where they cannot be used (C3). */
import { expect, test } from 'vitest';
import { formatProblem } from '../../../src/catalog/check/problem.ts';
import { loadManifests } from '../../../src/catalog/load.ts';

const head = (kind: string, name: string): string =>
  `kind: ${kind}\nversion: "1.0"\nname: ${name}\nsummary: Something\n`;
const tool = (timeout: string): string => `${head('Tool', 't')}implementation: {type: client}\ntimeout: ${timeout}\n`;
const problemsOf = (...texts: string[]): string[] =>
  loadManifests(texts.map((text, at) => ({ path: `${at}.yaml`, text }))).problems.map(formatProblem);

test('[C3] a client tool may wait for days', () => {
  expect(problemsOf(tool('7d'))).toEqual([]);
  expect(problemsOf(tool('8d'))).toEqual([expect.stringContaining('must be between 1 ms and 604800 s, found 8d')]);
});

test('[C3] a feed cannot have a client tool as its source', () => {
  const agent = `${head('Agent', 'a')}persona: You.\nimport: {tools: [t]}\ncontext_feeds:\n  - {id: f, type: on_demand, source: {type: tool, name: t}}\n`;
  expect(problemsOf(tool('1h'), agent)).toEqual([
    expect.stringContaining('"t" is a client tool: a feed has no client that executes it'),
  ]);
});
