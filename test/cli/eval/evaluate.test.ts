/** Evaluations: runs, outcomes, and what a report says about them (O3). */
import { describe, expect, test } from 'vitest';
import { readDataset } from '../../../cli/eval/dataset.ts';
import { evaluate } from '../../../cli/eval/evaluate.ts';
import type { CaseRequest, CaseResult, EvaluateOptions, RunCase } from '../../../cli/eval/evaluate.ts';
import { reportOf } from '../../../cli/eval/report.ts';
import type { EvalReport } from '../../../cli/eval/report.ts';
import { verdictOf } from '../../../cli/eval/verdict.ts';
import type { JsonObject } from '../../../src/domain/json.ts';

const document = (response: string, more: JsonObject = {}): JsonObject => ({
  status: 'completed',
  response,
  session_id: 'ses_1',
  run_id: 'run_1',
  actions: [],
  usage: { prompt_tokens: 10, completion_tokens: 5, cost: 0.01 },
  ...more,
});
const failed = (code: string): JsonObject =>
  document('', { status: 'failed', error: { code, message: 'a message' }, usage: null });

/** The run of a message: `ok`, or a code of a failed run. */
const byMessage: RunCase = async ({ message }) => ({
  document: message === 'ok' ? document('ok') : failed(message),
  models: ['a-model'],
});

interface Options extends Partial<EvaluateOptions> {
  readonly verdict?: 'pass' | 'fail' | 'none';
}

async function evaluated(yaml: string, { verdict = 'pass', ...options }: Options = {}): Promise<EvalReport> {
  const dataset = readDataset(yaml);
  let time = 0;
  const results = await evaluate(dataset, {
    agent: 'assistant',
    repeat: 1,
    concurrency: 1,
    run: byMessage,
    askJudge: async () => ({
      text: verdict === 'none' ? 'well' : `{"code": "c", "verdict": "${verdict}", "reason": "so"}`,
      tokens: 1_000,
      cost: 0.2,
      session_id: 'ses_judge',
      models: ['judge-model'],
    }),
    newCode: () => 'c',
    now: () => (time += 500),
    done: () => undefined,
    ...options,
  });
  const head = { file: 'd.yaml', created_at: '2026-01-01T00:00:00.000Z', agent: 'assistant', system: 'x' };
  return reportOf(dataset, results, { ...head, options: { repeat: 1, concurrency: 1, judge: null } });
}

const cases = (...all: readonly string[]): string => `cases: [${all.join(', ')}]`;
const single = (message: string, expectation = 'contains: ok'): string =>
  `{name: ${message}, message: ${message}, expect: [{${expectation}}]}`;

describe('[O3] a run', () => {
  test('gets what its case says', async () => {
    const asked: CaseRequest[] = [];
    await evaluated(
      cases(
        single('ok'),
        '{name: b, message: ok, agent: other, variables: {x: 1}, history: [{role: user, content: hi}], approvals: deny, expect: [{exact: ok}]}',
      ),
      {
        run: async (request) => {
          asked.push(request);
          return await byMessage(request);
        },
      },
    );
    expect(asked).toEqual([
      { agent: 'assistant', message: 'ok', variables: {}, history: [], approvals: null },
      {
        agent: 'other',
        message: 'ok',
        variables: { x: 1 },
        history: [{ role: 'user', content: 'hi' }],
        approvals: 'deny',
      },
    ]);
  });

  test.each(['max_iterations', 'budget_exceeded', 'no_progress', 'generation_content_filter'])(
    'that ends with %s is a failure of the agent',
    async (code) => {
      const [result] = (await evaluated(cases(single(code)))).results;
      expect(result).toMatchObject({
        outcome: 'failed',
        reasons: [`the run is failed (${code}: a message)`, expect.anything()],
      });
    },
  );

  test.each(['model_unavailable', 'model_timeout', 'model_rejected', 'runner_unavailable', 'internal', 'a_later_code'])(
    'that ends with %s says nothing about the agent',
    async (code) => {
      const report = await evaluated(cases(single('ok'), single(code)));
      expect(report.results[1]).toMatchObject({
        outcome: 'error',
        reasons: [`the run is failed (${code}: a message)`],
      });
      expect(report).toMatchObject({ passed: 1, failed: 0, errors: 1, pass_rate: { value: 1 } });
    },
  );

  test('that could not be made is an error', async () => {
    const report = await evaluated(cases(single('ok')), {
      run: async () => {
        throw new Error('no system');
      },
    });
    expect(report.results[0]).toMatchObject({ outcome: 'error', reasons: ['no system'], session_id: null });
    expect(report).toMatchObject({ passed: 0, failed: 0, errors: 1, pass_rate: null, tokens: null, ms: null });
  });

  test('that cannot be scored is an error, and the others keep their results', async () => {
    const long = document('x'.repeat(2_000_000), { run_id: 'run_2' });
    const report = await evaluated(cases(single('ok'), single('long', 'matches: "[a-y]{500}"')), {
      run: async ({ message }) => ({ document: message === 'ok' ? document('ok') : long, models: [] }),
    });
    expect(report).toMatchObject({ passed: 1, failed: 0, errors: 1 });
    expect(report.results[1]).toMatchObject({
      outcome: 'error',
      reasons: [expect.stringContaining('the run could not be scored: ')],
      session_id: 'ses_1',
      run_id: 'run_2',
    });
  });

  test('that was cancelled has failed', async () => {
    const report = await evaluated(cases(single('ok')), {
      run: async () => ({ document: document('', { status: 'cancelled' }), models: [] }),
    });
    expect(report.results[0]?.reasons[0]).toBe('the run is cancelled');
    expect(report.failed).toBe(1);
  });

  test('gives every reason why it failed', async () => {
    const expectations = 'expect: [{exact: yes}, {contains: o}, {matches: "^y"}]';
    const report = await evaluated(cases(`{name: a, message: ok, ${expectations}}`));
    expect(report.results[0]?.reasons).toEqual(['the answer is "ok"', 'the answer does not match ^y: "ok"']);
  });
});

describe('[O3] repeats', () => {
  test('run with a bounded number at a time, and keep the order of the dataset', async () => {
    let [active, most] = [0, 0];
    const done: CaseResult[] = [];
    const report = await evaluated(cases(single('ok'), single('internal'), single('max_iterations')), {
      repeat: 3,
      concurrency: 2,
      done: (result) => done.push(result),
      run: async (request) => {
        active += 1;
        most = Math.max(most, active);
        await new Promise((resolve) => setImmediate(resolve));
        active -= 1;
        return await byMessage(request);
      },
    });
    expect(most).toBe(2);
    expect(done).toHaveLength(9);
    expect(report.results.map(({ name, repetition }) => `${name}${repetition}`).join(' ')).toBe(
      'ok1 ok2 ok3 internal1 internal2 internal3 max_iterations1 max_iterations2 max_iterations3',
    );
    expect(report.cases).toMatchObject([
      { name: 'ok', passed: 3, failed: 0, errors: 0, pass_rate: { value: 1 }, tokens: 15, cost: 0.01 },
      { name: 'internal', passed: 0, failed: 0, errors: 3, pass_rate: null, tokens: null, cost: null, ms: null },
      { name: 'max_iterations', passed: 0, failed: 3, errors: 0, pass_rate: { value: 0 } },
    ]);
  });

  test('of one case are independent of each other, those of several cases are not', async () => {
    const report = await evaluated(cases(single('ok'), single('max_iterations')), { repeat: 20 });
    const [first] = report.cases;
    expect(first?.pass_rate?.low).toBeCloseTo(0.839, 3);
    // Two cases: almost nothing is known about others.
    expect(report.pass_rate?.low).toBeLessThan(0.1);
    expect(report.pass_rate?.high).toBeGreaterThan(0.9);
  });
});

describe('[O3] a stopped evaluation', () => {
  test('starts no run, drops those in progress, and keeps the others', async () => {
    const stop = new AbortController();
    const started: string[] = [];
    const report = await evaluated(cases(single('ok'), single('internal'), single('max_iterations')), {
      repeat: 2,
      concurrency: 2,
      signal: stop.signal,
      run: async (request) => {
        started.push(request.message);
        if (started.length === 3) {
          stop.abort();
          throw new Error('cancelled');
        }
        return await byMessage(request);
      },
    });
    expect(started.length).toBeLessThanOrEqual(4);
    expect(report.results.map(({ name, repetition }) => `${name}${repetition}`)).toEqual(['ok1', 'ok2']);
    expect(report).toMatchObject({ passed: 2, failed: 0, errors: 0 });
    expect(report.cases[2]).toMatchObject({ passed: 0, failed: 0, errors: 0, pass_rate: null });
  });

  test('is incomplete, whatever the results say', async () => {
    const report = { ...(await evaluated(cases(single('ok'), single('max_iterations')))), omitted: 3 };
    expect(verdictOf(report, null, 'failure')).toEqual({
      result: 'stopped',
      reason: 'the evaluation was stopped: 3 of 5 runs were not made',
      exit: 1,
    });
  });
});

describe('[O3] the judge', () => {
  const judged = (more: string): string => cases(`{name: a, message: ok, expect: [${more}{judge: polite}]}`);

  test.each([
    ['pass', 'passed', []],
    ['fail', 'failed', ['the judge says fail: so']],
    ['none', 'error', ['no judgement: the judge gave no verdict: "well"']],
  ] as const)('says %s: the run has %s', async (verdict, outcome, reasons) => {
    const report = await evaluated(judged(''), { verdict });
    expect(report.results[0]).toMatchObject({ outcome, reasons });
  });

  test('has tokens and cost of its own', async () => {
    const report = await evaluated(judged(''));
    expect(report.tokens).toEqual({ total: 15, median: 15, p90: 15 });
    expect(report.cost?.total).toBe(0.01);
    expect(report.judge).toEqual({ judgements: 1, errors: 0, models: ['judge-model'], tokens: 1_000, cost: 0.2 });
    expect(report.models).toEqual(['a-model']);
  });

  test('reads a given answer, and no agent is asked', async () => {
    const report = await evaluated(
      cases('{name: a, message: m, answer: given, expect: [{exact: given}, {judge: polite}]}'),
      {
        run: async () => {
          throw new Error('an agent was asked');
        },
      },
    );
    expect(report.results[0]).toMatchObject({ outcome: 'passed', response: 'given', tokens: 0 });
    expect(report.judge?.judgements).toBe(1);
  });

  test('is not asked about an answer that has failed already', async () => {
    const report = await evaluated(judged('{exact: other}, '));
    expect(report.results[0]).toMatchObject({ outcome: 'failed', reasons: ['the answer is "ok"'], judgements: [] });
    expect(report.judge).toBeNull();
  });
});

describe('[O3] the verdict', () => {
  test('errors make it incomplete, whatever the others say', async () => {
    const report = await evaluated(cases(single('ok'), single('internal'), single('max_iterations')));
    expect(verdictOf(report, null, 'failure')).toEqual({
      result: 'error',
      reason: '1 of 3 runs could not be made or judged, so the evaluation is incomplete',
      exit: 1,
    });
  });

  test('a failed run fails it, unless something else was asked for', async () => {
    const report = await evaluated(cases(single('ok'), single('max_iterations')));
    expect(verdictOf(report, null, 'failure')).toMatchObject({ result: 'failed', exit: 1 });
    expect(verdictOf(report, null, 'regression')).toEqual({ result: 'passed', reason: null, exit: 0 });
    expect(verdictOf(await evaluated(cases(single('ok'))), null, 'failure')).toMatchObject({
      result: 'passed',
      exit: 0,
    });
  });
});
