/** Evaluations of agents: datasets, scorers and reports (K4). */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { readDataset } from '../../cli/eval/dataset.ts';
import { evaluate, reportLines } from '../../cli/eval/evaluate.ts';
import type { CaseResult, RunCase } from '../../cli/eval/evaluate.ts';
import { score } from '../../cli/eval/scorers.ts';
import type { Json, JsonObject } from '../../src/domain/json.ts';

const document = (response: string, more: JsonObject = {}): JsonObject => ({
  status: 'completed',
  response,
  session_id: 'ses_1',
  actions: [{ name: 'calculator', status: 'completed' }],
  usage: { prompt_tokens: 10, completion_tokens: 5, cost: 0.01 },
  ...more,
});

describe('[K4] scorers', () => {
  test.each<[Record<string, Json>, string, string | null]>([
    [{ exact: 'yes' }, ' yes\n', null],
    [{ exact: 'yes' }, 'yes!', 'the answer is "yes!"'],
    [{ contains: '42' }, 'it is 42', null],
    [{ contains: '43' }, 'it is 42', 'does not contain "43"'],
    [{ matches: '^[0-9]+$' }, '42', null],
    [{ matches: '^[a-z]+$' }, '42', 'does not match ^[a-z]+$'],
    [{ matches: '(a)\\1' }, 'aa', 'cannot be matched in linear time'],
    [{ json: { a: 1, b: [true] } }, '{"a":1,"b":[true],"c":0}', null],
    [{ json: { a: 1 } }, '```json\n{"a":1}\n```', null],
    [{ json: { a: { b: 2 } } }, '{"a":{"b":3}}', 'the answer.a.b is "3", not 2'],
    [{ json: [1, 2] }, '[1]', 'is not a list of 2 items'],
    [{ json: {} }, 'no', 'is not JSON'],
    [{ cel: 'actions.exists(a, a.name == "calculator")' }, '', null],
    [{ cel: 'usage.prompt_tokens < 5' }, '', 'the condition is false'],
    [{ cel: 'nothing == 1' }, '', 'nothing'],
  ])('%j on %j: %s', (expectation, response, reason) => {
    const found = score(expectation, { response, document: document(response) });
    if (reason === null) expect(found).toBeNull();
    else expect(found).toContain(reason);
  });
});

describe('[K4] datasets', () => {
  const one = (text: string): string => `cases: [{name: a, message: m, ${text}}]`;

  test.each([
    ['cases: []', 'cases: Too small'],
    ['casses: []', 'Did you mean "cases"?'],
    [one('expect: [{contains: x}], mesage: y'), 'cases[0]: "mesage" is unknown (known: name, message,'],
    [one('expect: [{contans: x}]'), 'must be a map with one of exact, contains, matches, json, cel'],
    [one('expect: []'), 'cases[0].expect'],
    ['cases: [{name: a, message: m, expect: [{exact: x}]}, {name: a, message: m, expect: [{exact: x}]}]', 'two cases'],
    ['a: [', 'line 1'],
  ])('%s is refused: %s', (yaml, message) => {
    expect(() => readDataset(yaml)).toThrow(message);
  });

  test('the example of docs/evaluation.md is one', () => {
    const [, yaml = ''] = /^```yaml\n([^]*?)^```$/m.exec(readFileSync('docs/evaluation.md', 'utf8')) ?? [];
    expect(readDataset(yaml).cases).toHaveLength(2);
  });
});

describe('[K4] an evaluation', () => {
  const dataset = readDataset(
    'cases: [{name: good, message: g, expect: [{contains: ok}]}, {name: bad, message: b, agent: other, variables: {x: 1}, expect: [{exact: ok}, {contains: z}]}, {name: broken, message: f, expect: [{contains: x}]}]',
  );
  const asked: Parameters<RunCase>[0][] = [];
  const run: RunCase = async (given) => {
    asked.push(given);
    if (given.message === 'f') throw new Error('no system');
    if (given.message === 'g') return document('ok');
    return document('nothing', { status: 'failed', error: { code: 'llm_error', message: 'down' }, usage: null });
  };
  let time = 0;
  const options = { agent: 'assistant', repeat: 1, concurrency: 2, now: () => (time += 500), done: () => undefined };

  test('runs every case with its agent and variables, and reports why cases fail', async () => {
    const report = await evaluate(dataset, run, options);
    expect(asked).toEqual([
      { agent: 'assistant', message: 'g', variables: {} },
      { agent: 'other', message: 'b', variables: { x: 1 } },
      { agent: 'assistant', message: 'f', variables: {} },
    ]);
    expect(report).toMatchObject({ passed: 1, failed: 2, tokens: 15, cost: 0.01 });
    expect(report.results.map(({ reasons }) => reasons)).toEqual([
      [],
      ['the run is failed (llm_error: down)', 'the answer is "nothing"', 'the answer does not contain "z": "nothing"'],
      ['no system'],
    ]);
    const lines = reportLines(report).join('\n');
    expect(lines).toContain('✗ bad: the run is failed (llm_error: down) (ses_1)');
    expect(lines).toContain('1 of 3 passed, 15 tokens, $0.0100');
  });

  test('repeats, with a bounded number at a time, and keeps the order of the dataset', async () => {
    let active = 0;
    let most = 0;
    const done: CaseResult[] = [];
    const slow: RunCase = async (given) => {
      active += 1;
      most = Math.max(most, active);
      await new Promise((resolve) => setImmediate(resolve));
      active -= 1;
      return await run(given);
    };
    const report = await evaluate(dataset, slow, { ...options, repeat: 3, done: (result) => done.push(result) });
    expect(most).toBe(2);
    expect(done).toHaveLength(9);
    expect(report.results.map(({ name, repetition }) => `${name}${repetition}`).join(' ')).toBe(
      'good1 good2 good3 bad1 bad2 bad3 broken1 broken2 broken3',
    );
  });
});
