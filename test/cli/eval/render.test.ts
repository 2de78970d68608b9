/** What `cortex eval` shows to people (O3). */
import { createColors } from 'picocolors';
import { describe, expect, test } from 'vitest';
import type { Comparison } from '../../../cli/eval/compare.ts';
import { readDataset } from '../../../cli/eval/dataset.ts';
import type { CaseResult } from '../../../cli/eval/evaluate.ts';
import { EvalProgress } from '../../../cli/eval/progress.ts';
import { renderReport } from '../../../cli/eval/render.ts';
import { reportOf } from '../../../cli/eval/report.ts';

const result = (name: string, more: Partial<CaseResult> = {}): CaseResult => ({
  name,
  repetition: 1,
  outcome: 'passed',
  reasons: [],
  response: '',
  session_id: `ses_${'1'.repeat(32)}`,
  run_id: null,
  models: ['a-model'],
  tokens: 1_204,
  cost: 0.001,
  ms: 1_234,
  judgements: [],
  ...more,
});
const LONG = `a name that is longer than the column of the table ${'x'.repeat(50)}`;
const dataset = readDataset(
  `cases: [${['good', LONG, 'down'].map((name) => `{name: "${name}", message: m, expect: [{exact: x}]}`).join(', ')}]`,
);
const report = reportOf(
  dataset,
  [
    result('good'),
    result('good', { repetition: 2, tokens: 2_000 }),
    result(LONG, { outcome: 'failed', reasons: ['the answer is "\u001B[2K"\nnext'] }),
    result(LONG, { repetition: 2 }),
    result('down', { outcome: 'error', reasons: ['no network'], session_id: null }),
    result('down', { repetition: 3, outcome: 'error', reasons: ['no network'], session_id: null }),
    result('down', { repetition: 2, outcome: 'error', reasons: ['y'.repeat(1_000)], session_id: null }),
  ],
  {
    file: 'd.yaml',
    created_at: '2026-01-01T00:00:00.000Z',
    agent: 'assistant',
    system: 'x',
    options: { repeat: 2, concurrency: 1, judge: null },
  },
);
const comparison: Comparison = {
  file: 'before.json',
  created_at: '2025-12-31T00:00:00.000Z',
  agent: 'assistant',
  models: ['old\u0007model'],
  compared: 2,
  better: [],
  worse: [{ name: LONG, before: 1, now: 0.5 }],
  added: ['down'],
  removed: [],
  edited: [],
  unmeasured: [],
  pass_rate: { value: -0.25, low: -0.6, high: 0.2 },
  sign_test_p: 1,
  is_regression: false,
  tokens: { before: 1_000, now: 1_204 },
  cost: { before: null, now: 0.001 },
  ms: { before: 2_000, now: 1_234 },
};
const lines = renderReport(report, comparison, { colors: createColors(false) });

describe('[O3] the printed report', () => {
  test('has a row for each case', () => {
    expect(lines.slice(0, 4)).toEqual([
      '  case                                        passed  95 % interval  tokens   time  change',
      '✓ good                                           2/2       34–100 %   1,602  1.2 s',
      '✗ a name that is longer than the column o…       1/2         9–91 %   1,204  1.2 s     −50',
      '! down                                      0/0 +3 !',
    ]);
  });

  test('has no intervals of cases that ran once', () => {
    const head = {
      file: '',
      created_at: '',
      agent: '',
      system: '',
      options: { repeat: 1, concurrency: 1, judge: null },
    };
    const once = reportOf(dataset, [result('good'), result(LONG), result('down')], head);
    const [heads, first] = renderReport(once, null, { colors: createColors(false) });
    expect(heads?.split(/ {2,}/)).toEqual(['', 'case', 'passed', 'tokens', 'time']);
    expect(first?.split(/ {2,}/)).toEqual(['✓ good', '1/1', '1,204', '1.2 s']);
  });

  test('gives the reasons with their sessions, without control characters', () => {
    expect(lines).toContain(`✗ ${LONG} #1  ses_${'1'.repeat(32)}`);
    expect(lines).toContain('    the answer is "\\u{1b}[2K"\\u{a}next');
    expect(lines).toContain('! down #1 #3');
    expect(lines.filter((line) => line === '    no network')).toHaveLength(1);
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThan(420);
  });

  test('tells runs without a result from failures', () => {
    expect(lines).toContain('3 of 4 runs passed, 1 failed, 3 without a result: 75 % (21–97 %)');
    expect(lines).toContain('5,612 tokens (median 1,204, p90 2,000), $0.0040, time: median 1.2 s, p90 1.2 s');
  });

  test('compares', () => {
    expect(lines.slice(-4)).toEqual([
      'compared with before.json (2025-12-31, assistant, old\\u{7}model)',
      '2 cases: 0 better, 1 worse; pass rate: −25 (−60 to +20), sign test p = 1.000',
      'not compared: 1 new',
      'medians: tokens 1,000 → 1,204, time 2.0 s → 1.2 s',
    ]);
  });
});

describe('[O3] the progress', () => {
  function progressed(isTerminal: boolean): { readonly written: string[]; readonly progress: EvalProgress } {
    let now = 0;
    const written: string[] = [];
    const progress = new EvalProgress({
      total: 10,
      write: isTerminal ? (text) => written.push(text) : null,
      now: () => (now += 1_000),
    });
    for (const outcome of ['passed', 'failed', 'error'] as const) progress.take({ outcome });
    progress.clear();
    return { written, progress };
  }

  test('is one line on a terminal, with the time left', () => {
    const { written } = progressed(true);
    expect(written.map((text) => text.replace('\r\u001b[K', '>'))).toEqual([
      '>1 of 10 runs: 1 passed, 0 failed, about 9 s left',
      '>2 of 10 runs: 1 passed, 1 failed, about 8 s left',
      '>3 of 10 runs: 1 passed, 1 failed, 1 without a result, about 7 s left',
      '>',
    ]);
  });

  test('a pipe gets nothing', () => {
    expect(progressed(false).written).toEqual([]);
  });
});
