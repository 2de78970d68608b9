/** Comparisons of evaluations: which cases are paired, and what counts as worse (O3). */
import { describe, expect, test } from 'vitest';
import { compareReports, requireComparable } from '../../../cli/eval/compare.ts';
import type { Comparison } from '../../../cli/eval/compare.ts';
import { readDataset } from '../../../cli/eval/dataset.ts';
import type { Dataset } from '../../../cli/eval/dataset.ts';
import type { CaseResult } from '../../../cli/eval/evaluate.ts';
import type { Outcome } from '../../../cli/eval/outcome.ts';
import { readReport, reportOf } from '../../../cli/eval/report.ts';
import type { EvalReport } from '../../../cli/eval/report.ts';
import { verdictOf } from '../../../cli/eval/verdict.ts';

const dataset = (names: readonly string[], expected = 'x'): Dataset =>
  readDataset(
    `cases: [${names.map((name) => `{name: ${name}, message: m, expect: [{exact: ${expected}}]}`).join(', ')}]`,
  );

/** @param outcomes of each repetition, by the name of the case: `p` passed, `f` failed, `e` error */
function report(outcomes: Readonly<Record<string, string>>, of = dataset(Object.keys(outcomes))): EvalReport {
  const words: Readonly<Record<string, Outcome>> = { p: 'passed', f: 'failed', e: 'error' };
  const results = Object.entries(outcomes).flatMap(([name, letters]) =>
    [...letters].map((letter, at): CaseResult => ({
      name,
      repetition: at + 1,
      outcome: words[letter] ?? 'error',
      reasons: [],
      response: '',
      session_id: null,
      run_id: null,
      models: ['m'],
      tokens: 10,
      cost: null,
      ms: 100,
      judgements: [],
    })),
  );
  return reportOf(of, results, {
    file: 'd.yaml',
    created_at: '2026-01-01T00:00:00.000Z',
    agent: 'assistant',
    system: 'x',
    options: { repeat: 1, concurrency: 1, judge: null },
  });
}

/** As it is read from the file of the earlier report. */
const compared = (now: EvalReport, before: EvalReport): Comparison =>
  compareReports(now, readReport(JSON.stringify(before)), 'before.json');

const all = (count: number, letters: string): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`case${at}`, letters]));

describe('[O3] a comparison', () => {
  test('pairs equal cases by name, and says which are better and worse', () => {
    const found = compared(
      report({ same: 'pp', better: 'pp', worse: 'pf', added: 'p' }),
      report({ worse: 'pp', better: 'fp', same: 'pp', removed: 'f' }),
    );
    expect(found).toMatchObject({
      compared: 3,
      better: [{ name: 'better', before: 0.5, now: 1 }],
      worse: [{ name: 'worse', before: 1, now: 0.5 }],
      added: ['added'],
      removed: ['removed'],
      edited: [],
      unmeasured: [],
      pass_rate: { value: 0 },
      sign_test_p: 1,
      tokens: { before: 10, now: 10 },
      ms: { before: 100, now: 100 },
      cost: { before: null, now: null },
    });
  });

  test('leaves out cases with another content, and cases without a result', () => {
    const found = compared(
      report({ a: 'p', b: 'p', c: 'e' }),
      report({ a: 'f', b: 'f', c: 'p' }, { cases: [...dataset(['a', 'c']).cases, ...dataset(['b'], 'y').cases] }),
    );
    expect(found).toMatchObject({ compared: 1, better: [{ name: 'a' }], edited: ['b'], unmeasured: ['c'] });
  });

  test('a report of another dataset is refused before anything runs', () => {
    const before = readReport(JSON.stringify(report({ a: 'p', b: 'p' })));
    expect(() => requireComparable(dataset(['c']), before)).toThrow(
      'is of another dataset: none of its 2 cases is in this one',
    );
    expect(() => requireComparable(dataset(['a'], 'other'), before)).toThrow('1 have the name of a case here');
    expect(() => requireComparable(dataset(['a', 'c']), before)).not.toThrow();
  });
});

describe('[O3] a regression', () => {
  test.each([
    ['all of three cases', all(3, 'f'), all(3, 'p'), true],
    ['five of twenty cases', { ...all(20, 'p'), ...all(5, 'f') }, all(20, 'p'), true],
    ['two of twenty cases', { ...all(20, 'p'), ...all(2, 'f') }, all(20, 'p'), false],
    ['as many better as worse', { case0: 'f', case1: 'p' }, { case0: 'p', case1: 'f' }, false],
    ['better only', all(5, 'p'), all(5, 'f'), false],
  ])('%s: %s', (_, now, before, isRegression) => {
    expect(compared(report(now), report(before)).is_regression).toBe(isRegression);
  });

  test('decides with --fail-on regression, any worse case with --fail-on worse', () => {
    const [now, before] = [report({ ...all(20, 'p'), case0: 'f' }), report(all(20, 'p'))];
    const comparison = compared(now, before);
    expect(verdictOf(now, comparison, 'regression').exit).toBe(0);
    expect(verdictOf(now, comparison, 'worse')).toEqual({
      result: 'worse',
      reason: '1 of 20 cases pass less often than before',
      exit: 1,
    });
    const [much] = [report({ ...all(20, 'p'), ...all(6, 'f') })];
    expect(verdictOf(much, compared(much, before), 'regression')).toMatchObject({ result: 'regression', exit: 1 });
    // The same failures as before are no reason.
    expect(verdictOf(much, compared(much, much), 'worse')).toMatchObject({ result: 'passed', exit: 0 });
  });
});

describe('[O3] an earlier report', () => {
  test.each([
    ['no', 'is not JSON'],
    ['{"passed": 2}', 'it has no "version"'],
    ['{"version": 2}', 'is a report of version 2 (supported: 1); make a new one'],
    ['{"version": "1"}', 'is a report of version "1"'],
    ['{"version": 1}', 'is not a report of cortex eval: created_at'],
    ['[]', 'it has no "version"'],
  ])('%s is refused: %s', (text, message) => {
    expect(() => readReport(text)).toThrow(message);
  });

  test('may have members of a later version', () => {
    expect(readReport(JSON.stringify({ ...report({ a: 'p' }), later: 1 })).cases).toEqual([
      {
        name: 'a',
        digest: expect.stringMatching(/^[0-9a-f]{64}$/),
        passed: 1,
        failed: 0,
        tokens: 10,
        cost: null,
        ms: 100,
      },
    ]);
  });
});
