/** The examples of docs/memory.md. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { formatProblem } from '../../../src/catalog/check/problem.ts';
import { loadManifests } from '../../../src/catalog/load.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { AgentDefinition } from '../../../src/domain/manifests/agent.ts';
import { SUMMARY_PLACEHOLDERS, fillTemplate } from '../../../src/domain/summary-template.ts';
import { compact } from '../../../src/protocol/prompt/compaction.ts';
import { eventsOf } from '../../support/events.ts';
import { say, sessionKit } from '../../support/session-kit.ts';

// The other section has a test that runs its commands.
const [page = ''] = readFileSync('docs/memory.md', 'utf8').split('## Facts about the user');
const blocks = (language: string): string[] =>
  [...page.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))].map(([, text = '']) => text);

const { catalog, problems, warnings } = loadManifests(
  blocks('yaml').map((text, index) => ({ path: `${index}.yaml`, text })),
);
const memoryOf = (name: string): AgentDefinition['memory'] => {
  const memory = catalog.agent(name)?.agent.memory;
  if (memory === undefined) throw new Error(`docs/memory.md has no agent ${name}`);
  return memory;
};

test('[C10] the manifests load, with the settings that the page describes', () => {
  expect([...problems, ...warnings].map(formatProblem)).toEqual([]);
  expect(memoryOf('concierge')).toEqual({
    maxTurns: 40,
    summarizeAfter: 20,
    summary: { by: 'model', tokens: 600, template: null },
  });
  const template = memoryOf('support').summary?.template ?? '';
  const filled = fillTemplate(template, { previous: 'A', turns: 'B', tokens: '800' });
  expect(filled).toContain('The record so far:\nA\nWhat was said since:\nB');
  for (const name of SUMMARY_PLACEHOLDERS) expect(page).toContain(`| \`{{${name}}}\` |`);
});

test('[C10] the notice is what a prompt has', () => {
  const [shown = ''] = blocks('text');
  const text = [...shown.matchAll(/^> (.*)$/gm)].map(([, line = '']) => line).join('\n');
  const history = Array.from({ length: 40 }, (_, index) => ({
    user: `question ${index}`,
    answer: 'yes',
    generations: [
      {
        text: '',
        results: ['hotels', 'flights'].flatMap((id, at) =>
          index === at ? [{ id, name: 'echo', status: 'completed' as const, ms: 1 }] : [],
        ),
      },
    ],
  }));
  const { notice } = compact(history, memoryOf('concierge'), {
    unread: 0,
    summaryOf: (turns) => ({ text, turns }),
    recall: 'action',
  });
  expect(`${notice ?? ''}\n`).toBe(shown);
});

test('[C10] the example of recall reads turns', async () => {
  const [action = ''] = blocks('xml');
  const answers = ['one', 'two', 'three', 'four'].map((text) => `<response final="true">${text}</response>`);
  const kit = await sessionKit({
    agent: (agent) => ({ ...agent, memory: memoryOf('concierge') }),
    script: [...answers, action, '<response final="true">read</response>'],
  });
  for (const message of ['a', 'b', 'c', 'd', 'e']) await say(kit, message);
  const [done] = eventsOf(kit.events, 'action_completed');
  expect(done?.data.output).toEqual({ turns: [{ user: 'c', answer: 'three' }, 'four'] });
});

test('[C10] the amounts are those of the limits', () => {
  const amounts = [
    limits.summaryTokens,
    limits.summaryLeastTokens,
    limits.summaryMostTokens,
    limits.summaryReasoningTokens,
    limits.summaryInputResultChars,
    limits.turnValueChars,
    limits.historyTurns,
  ];
  for (const amount of amounts) expect(page).toContain(amount.toLocaleString('en-US'));
  expect([limits.summaryTolerance, limits.summaryCallMs, limits.summaryAttempts]).toEqual([1.25, 120_000, 3]);
});
