/**
 * What prompts cost and what they keep in long conversations (C10): tokens of each prompt, and facts that the user mentioned,
 * for each policy of `memory`. The session, its prompts and its summaries are real; the models are scripted.
 */
import type { MemoryPolicy } from '../src/domain/manifests/agent.ts';
import { conversationOf } from './memory/conversation.ts';
import { measure } from './memory/measure.ts';
import { table, writeSection } from './report.ts';
import { ENCODINGS } from './tokens/measure.ts';

const TURNS = [30, 100, 300] as const;
const SHOWN = 20;
const BUDGETS = [200, 800] as const;

const POLICIES: readonly (readonly [name: string, memory: MemoryPolicy])[] = [
  ['everything, up to 200 turns', { maxTurns: null, summarizeAfter: null }],
  [`\`max_turns: ${SHOWN}\``, { maxTurns: SHOWN, summarizeAfter: null }],
  [
    `\`summarize_after: ${SHOWN}\`, \`by: lines\``,
    { maxTurns: null, summarizeAfter: SHOWN, summary: { by: 'lines', tokens: 800, template: null } },
  ],
  ...BUDGETS.map((tokens): readonly [string, MemoryPolicy] => [
    `\`summarize_after: ${SHOWN}\`, \`by: model\`, \`tokens: ${tokens}\``,
    { maxTurns: null, summarizeAfter: SHOWN, summary: { by: 'model', tokens, template: null } },
  ]),
];

const percent = (share: number): string => `${Math.round(share * 100)} %`;
const whole = (value: number): string => Math.round(value).toLocaleString('en-US');

const sections: string[] = [];
for (const turns of TURNS) {
  const conversation = conversationOf(turns);
  const rows: string[][] = [];
  for (const [name, memory] of POLICIES) {
    const found = await measure(conversation, memory, ENCODINGS.o200k_base);
    rows.push([
      name,
      whole(found.meanTokens),
      whole(found.lastTokens),
      percent(found.sharedTokens),
      percent(found.shown),
      percent(found.reachable),
      String(turns + found.summaries),
      whole(found.summaryTokens),
    ]);
  }
  const head = [
    'policy',
    'tokens of a prompt, mean',
    'of the last one',
    'same beginning as the one before',
    'facts in the last prompt',
    'facts readable by `$turn_N`',
    'model calls',
    'tokens of all summaries',
  ];
  sections.push(`${turns} turns, ${conversation.facts.length} facts:\n\n${table(head, rows)}`);
}

const body = `Scripted conversations (\`bench/memory/conversation.ts\`). One message in three has a fact, anywhere in its text, and one fact in five
changes an earlier one; only the current value counts. Tokens are those of \`o200k_base\`, with the system prompt of the bundled assistant. The model that
writes summaries is a script that reads its request and keeps the newest facts that fit into the budget
(\`bench/memory/summariser.ts\`): the table shows what a budget can hold, not how well a language model summarises.

${sections.join('\n\n')}`;
console.log(body);
writeSection('Memory', 'npm run bench:memory', body, 1);
