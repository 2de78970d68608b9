/** The dataset that checks a judge (O3): a judge without judgement does not pass it. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { readDataset } from '../../cli/eval/dataset.ts';
import { evaluate } from '../../cli/eval/evaluate.ts';
import type { CaseResult } from '../../cli/eval/evaluate.ts';

const dataset = readDataset(readFileSync('evals/judge/known-verdicts.yaml', 'utf8'));
const CODE = 'c0de';

async function judgedBy(verdictOf: (prompt: string) => string): Promise<CaseResult[]> {
  return await evaluate(dataset, {
    agent: 'assistant',
    repeat: 1,
    concurrency: 1,
    run: async () => {
      throw new Error('an agent was asked');
    },
    askJudge: async (prompt) => ({ text: verdictOf(prompt), tokens: 0, cost: null, session_id: null, models: [] }),
    newCode: () => CODE,
    now: () => 0,
    done: () => undefined,
  });
}
const verdict = (word: string): string => JSON.stringify({ code: CODE, verdict: word, reason: 'always' });
const failing = (results: readonly CaseResult[]): string[] =>
  results.flatMap(({ name, outcome }) => (outcome === 'passed' ? [] : [name]));

test('[O3] a judge that accepts everything, or nothing, fails', async () => {
  const accepting = failing(await judgedBy(() => verdict('pass')));
  const refusing = failing(await judgedBy(() => verdict('fail')));
  expect(accepting.length).toBeGreaterThan(3);
  expect(refusing.length).toBeGreaterThan(3);
  expect([...accepting, ...refusing].toSorted()).toEqual(dataset.cases.map(({ name }) => name).toSorted());
});

test('[O3] a judge that repeats the answer is an error in every case', async () => {
  const block = new RegExp(`<answer-${CODE}>\n([^]*)\n</answer-${CODE}>`);
  const results = await judgedBy((prompt) => block.exec(prompt)?.[1] ?? '');
  expect(results.map(({ outcome }) => outcome)).toEqual(dataset.cases.map(() => 'error'));
});
