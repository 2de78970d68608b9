/** What uses what in the catalogue, and its filter (U4). */
import { expect, test } from 'vitest';
import { isMeant, linksOf } from '../../../console/pages/manifest-links.ts';

test('[U4] what uses what is known from both sides, and once', () => {
  const { uses, usedBy } = linksOf({
    edges: [
      { from: 'agent/a', to: 'relic/r', how: 'import' },
      { from: 'agent/a', to: 'tool/t', how: 'import' },
      { from: 'agent/b', to: 'tool/t', how: 'import' },
      { from: 'agent/a', to: 'relic/r', how: 'feed' },
    ],
  });
  expect([...(uses.get('agent/a') ?? [])]).toEqual(['relic/r', 'tool/t']);
  expect([...(usedBy.get('tool/t') ?? [])]).toEqual(['agent/a', 'agent/b']);
  expect([uses.get('tool/t'), usedBy.get('agent/a')]).toEqual([undefined, undefined]);
});

test.each([
  ['', true],
  ['calc', true],
  ['tool calc', true],
  ['TOOL  exact ', true],
  ['calc nothing', false],
  // A word is never found across two members.
  ['calculatorEvaluates', false],
])('[U4] the filter %j', (filter, expected) => {
  const manifest = {
    kind: 'tool',
    name: 'calculator',
    summary: 'Evaluates; exact.',
    tags: ['builtin', 'math'],
  } as const;
  expect(isMeant(manifest, filter)).toBe(expected);
});
