/**
 * The cost of an action in tokens (P18): fifty calls of the shipped tools in each form, counted with
 * the tokenizers of real models. All forms use the same compact JSON for arguments.
 */
import { table, writeSection } from './report.ts';
import { CALLS, TURNS } from './tokens/calls.ts';
import { ENCODINGS, FORMS, median, native, tokensWithSpecialTags } from './tokens/measure.ts';
import { toolPrompts } from './tokens/tool-prompts.ts';
import type { ShownAction } from '../src/protocol/prompt/examples.ts';
import { renderAction } from '../src/protocol/prompt/examples.ts';
import { limits } from '../src/domain/limits.ts';

const TARGET = 1.2;

function row(name: string, tokens: readonly number[], base: readonly number[], special: readonly number[]): string[] {
  const ratiosTo = (others: readonly number[]): number[] =>
    tokens.map((count, index) => count / (others[index] ?? Number.NaN));
  const ratios = ratiosTo(base);
  const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
  return [
    name,
    String(median(tokens)),
    median(ratios).toFixed(2),
    (sum(tokens) / sum(base)).toFixed(2),
    Math.max(...ratios).toFixed(2),
    median(ratiosTo(special)).toFixed(2),
  ];
}

const HEAD = [
  'form',
  'median tokens',
  'median ratio',
  'ratio of the sums',
  'largest ratio',
  'median ratio to special tags',
];
const sections = Object.entries(ENCODINGS).map(([encoding, count]) => {
  const natives = CALLS.map((call) => count(native(call)));
  const special = CALLS.map((call) => tokensWithSpecialTags(count, call));
  const rows = Object.entries(FORMS).map(([form, write]) =>
    row(
      form,
      CALLS.map((call) => count(write(call))),
      natives,
      special,
    ),
  );
  rows.push(row('native, with a special token for each of its two tags', special, natives, special));
  return `\`${encoding}\`. Ratios are to the first row, in the last column to the last row:\n\n${table(HEAD, rows)}`;
});

const { o200k_base: count } = ENCODINGS;
const sample: ShownAction = { name: 'calculator', parameters: { expression: '2 + 2' } };
const bare = count(renderAction(sample, 'compact'));
const cost = (further: Partial<ShownAction>): string =>
  String(count(renderAction({ ...sample, ...further }, 'compact')) - bare);
const attributes = table(
  ['attribute', 'tokens'],
  [
    ['`id="sum"`', cost({ id: 'sum' })],
    ['`mode="async"`', cost({ mode: 'async' })],
    ['`type="tool"`', cost({ type: 'tool' })],
    ['`depends_on="a,b"`', cost({ dependsOn: ['a', 'b'] })],
    ['`output_key="sum"`', cost({ outputKey: 'sum' })],
  ],
);
const share = (has: (call: ShownAction) => boolean): number => CALLS.filter(has).length;

const body = `${CALLS.length} calls of the bundled tools in ${TURNS.length} turns (\`bench/tokens/calls.ts\`). Each call has the attributes that the prompt teaches
for its position: ${share(({ id }) => id !== undefined)} have an id because another text refers to them, ${share(({ mode }) => mode !== undefined)} run in parallel with others (\`async\`), ${share(({ dependsOn }) => dependsOn !== undefined)} waits for
others without a reference. A native call cannot express any of these. The target is a median of at most ${TARGET} times the
native form, written as text. Models that were trained on native calls often have one special token for each of its two
tags; the last row and the last column count them in this way. If a parameter refers to an earlier result, the native call
is counted with the same reference, although it would have to repeat the value.

${sections.join('\n\n')}

Tokens of an attribute of the compact form (\`o200k_base\`):

${attributes}

The system prompt of an agent with many tools, whose schemas have 2 KB each (\`o200k_base\`). The short form is the default, with a budget of
${String(limits.promptToolTokens)} estimated tokens for tools:

${table(['tools', 'tokens in full', 'tokens in short form', 'building it the first time in a run, ms'], toolPrompts(count))}`;
console.log(body);
writeSection('Tokens', 'npm run bench:tokens', body);
