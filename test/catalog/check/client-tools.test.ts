/** Client tools in manifests: their time-out, and where they cannot be used (C3). */
import { expect, test } from 'vitest';
import { agent, problemsOf, tool } from '../../support/manifests.ts';

const client = (timeout: string): string => tool('t', `implementation: {type: client}\ntimeout: ${timeout}`);

test('[C3] a client tool may wait for days', () => {
  expect(problemsOf({ 't.yaml': client('7d') })).toEqual([]);
  expect(problemsOf({ 't.yaml': client('8d') })).toEqual([
    expect.stringContaining('must be between 1 ms and 604800 s, found 8d'),
  ]);
});

test('[C3] a feed cannot have a client tool as its source', () => {
  const feed = '{id: f, type: on_demand, source: {type: tool, name: t}}';
  const reader = agent('a', `import: {tools: [t]}\ncontext_feeds: [${feed}]`);
  expect(problemsOf({ 't.yaml': client('1h'), 'a.yaml': reader })).toEqual([
    expect.stringContaining('"t" is a client tool: a feed has no client that executes it'),
  ]);
});
