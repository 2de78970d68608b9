/** The recommendation, from made-up measures. */
import { describe, expect, test } from 'vitest';
import type { FormName } from '../../../cli/fluency/tasks/forms.ts';
import type { RunMeasures } from '../../../cli/fluency/score/measure.ts';
import { manifestSnippet, recommend } from '../../../cli/fluency/score/recommend.ts';
import type { MeasuredForm, Recommendation } from '../../../cli/fluency/score/recommend.ts';
import { pairedDifference, student95 } from '../../../cli/statistics.ts';
import { formScore, partsOf, scoreOf } from '../../../cli/fluency/score/score.ts';
import { KINDS } from '../../../cli/fluency/tasks/dataset.ts';
import { runWith } from './run-measures.ts';

const TASKS = 40;
const NO_REFERENCES = { needed: 2, used: 0, missing: 0, unknown: 0 };

/** @param of the measures of each task, 0-based */
function formWith(form: FormName, of: (task: number) => Partial<RunMeasures>, tasks = TASKS): MeasuredForm {
  const runs = Array.from({ length: tasks }, (_, at) => runWith({ form, task: `task-${at}`, ...of(at) }));
  return { form, runs, score: formScore(runs) };
}

const every = (form: FormName, measures: Partial<RunMeasures> = {}): MeasuredForm => formWith(form, () => measures);
const solvedIf = (solved: boolean): Partial<RunMeasures> => ({ solved, reason: solved ? null : 'wrong' });
const chosen = (...forms: MeasuredForm[]): Recommendation => recommend(forms);

describe('[O4] the recommended form', () => {
  test('no difference: the default', () => {
    expect(chosen(every('compact'), every('full'))).toMatchObject({
      form: 'full',
      reasons: ['full and compact do not differ by more than the uncertainty; full comes first.'],
    });
  });

  test('more solved tasks', () => {
    const full = formWith('full', (at) => solvedIf(at % 4 !== 0));
    expect(chosen(full, every('tool_calls', { makespanMs: 9_000, idealMs: 9_000 })).form).toBe('tool_calls');
  });

  test.each([
    [9, 'full'],
    [10, 'compact'],
  ])('an equal difference in each of %i tasks: %s', (tasks, form) => {
    const found = chosen(
      formWith('full', () => ({}), tasks),
      formWith('compact', () => ({ effort: 1_000 }), tasks),
    );
    expect(found).toMatchObject({ form, tasks });
    const isFew = found.reasons.includes('Differences between forms do not count with fewer than 10 tasks.');
    expect(isFew).toBe(tasks < 10);
  });

  test('more solved tasks, but within the uncertainty: the faster one', () => {
    const full = formWith('full', (at) => solvedIf(at > 0));
    const found = chosen(full, every('tool_calls', { makespanMs: 9_000, idealMs: 9_000 }));
    expect(found.form).toBe('full');
    expect(found.reasons.join('\n')).toMatch(/^full needs less nominal time than tool_calls: 6\d(\.\d)? %/);
  });

  test('fewer mistakes, then fewer tokens', () => {
    const sloppy = formWith('full', (at) => ({ validity: [at % 2 === 0 ? 0.5 : 1] }));
    expect(chosen(sloppy, every('compact', { effort: 9_999 })).form).toBe('compact');
    expect(chosen(every('full'), every('compact', { effort: 1_000 })).form).toBe('compact');
  });

  test('a difference of tokens that changes from task to task decides nothing', () => {
    const compact = formWith('compact', (at) => ({ effort: at % 2 === 0 ? 1_000 : 2_900 }));
    expect(chosen(every('full', { effort: 2_000 }), compact).form).toBe('full');
  });

  test('time counts only where both forms solve the task', () => {
    const failing = (makespanMs: number) => (at: number) => (at < 6 ? { ...solvedIf(false), makespanMs } : {});
    // Runs that fail early are short.
    const full = formWith('full', failing(1));
    const compact = formWith('compact', (at) => ({ ...failing(3_000)(at), effort: 1_000 }));
    expect(chosen(full, compact).form).toBe('compact');
  });

  test('a grammar only for a higher score', () => {
    const broken = formWith('full', (at) => solvedIf(at % 3 !== 0));
    expect(chosen(broken, every('grammar')).form).toBe('grammar');
    expect(chosen(every('full'), every('grammar', { effort: 1 })).form).toBe('full');
  });

  test('only the grammar works', () => {
    const found = chosen(every('full', solvedIf(false)), every('grammar'));
    expect(found).toMatchObject({ form: 'grammar', protocol: { form: 'full', dialect: 'protocol' } });
    expect(found.reasons[0]).toBe('full solves only 0 % of the tasks.');
  });

  test('none if all solve less than half', () => {
    const found = chosen(formWith('full', (at) => solvedIf(at % 3 === 0)));
    expect(found).toMatchObject({ form: null, protocol: null });
    expect(found.reasons.join()).toContain('full 35 %');
  });

  test('runs that end with an announcement: bare_text: reject', () => {
    const announced = (at: number): Partial<RunMeasures> =>
      at % 5 === 0
        ? {
            ...solvedIf(false),
            calls: { needed: 2, made: 0, missing: 2, superfluous: 0, repeated: 0, premature: 0 },
            mistakes: [{ code: 'no_protocol', message: '', wrote: 'Sure!' }],
          }
        : {};
    expect(chosen(formWith('full', announced)).protocol).toEqual({
      form: 'full',
      dialect: 'auto',
      bare_text: 'reject',
    });
    expect(chosen(formWith('tool_calls', announced)).protocol).not.toHaveProperty('bare_text');
  });
});

describe('[O4] the snippet is part of a manifest', () => {
  test('of a form', () => {
    expect(manifestSnippet(chosen(every('tool_calls')), null)).toEqual([
      '# native tool calls',
      'protocol:',
      '  form: full',
      '  dialect: tool_calls',
    ]);
  });

  test('of a grammar, with the field that takes it', () => {
    expect(manifestSnippet(chosen(every('grammar')), 'structured_outputs.grammar').slice(4)).toEqual([
      'cognitive_engine:',
      '  parameters:',
      '    structured_outputs:',
      '      grammar: |',
      '        # the output of: cortex grammar <agent>',
    ]);
  });

  test('nothing without a recommendation', () => {
    expect(manifestSnippet(chosen(every('full', solvedIf(false))), null)).toEqual([]);
  });
});

test('[O4] a difference is of pairs, with the uncertainty of their mean', () => {
  const a = new Map(Object.entries({ x: 0.9, y: 0.5, z: 0.7, 'only-a': 0 }));
  const b = new Map(Object.entries({ x: 0.8, y: 0.3, z: 0.7 }));
  const { mean, margin, pairs } = pairedDifference(a, b);
  expect([mean, pairs]).toEqual([expect.closeTo(0.1), 3]);
  expect(margin).toBeCloseTo((4.3027 * 0.1) / Math.sqrt(3));
  expect(pairedDifference(new Map([['x', 1]]), b).margin).toBe(Infinity);
  expect(pairedDifference(new Map(), b).pairs).toBe(0);
});

test('[O4] the score is the weighted mean of the parts that apply, with an interval over the tasks', () => {
  const runs = [
    runWith({ task: 'a' }),
    runWith({ task: 'a', repetition: 2, ...solvedIf(false) }),
    runWith({ task: 'b', references: { needed: 0, used: 0, missing: 0, unknown: 0 } }),
  ];
  const { score, parts, byTask, interval } = formScore(runs);
  // correctness, plan and economy are 0; repair does not apply
  const unsolved = (15 + 10) / 90;
  expect(byTask).toEqual(
    new Map([
      ['a', expect.closeTo((1 + unsolved) / 2)],
      ['b', 1],
    ]),
  );
  expect(score).toBeCloseTo(50 * ((1 + unsolved) / 2 + 1));
  expect(parts).toMatchObject({ correctness: expect.closeTo(200 / 3), references: 100, repair: null });
  expect([interval.low < score, score <= interval.high]).toEqual([true, true]);
});

test.each<[string, Partial<RunMeasures>, number | null]>([
  ['a run without a mistake', {}, null],
  ['a task of the kind', { kind: 'repair' }, 1],
  ['a rejected action and the right answer', { rejected: 1 }, null],
  ['a rejected action and a wrong answer', { rejected: 1, ...solvedIf(false) }, 0],
  ['a failed action', { failed: 1, ...solvedIf(false) }, 0],
  ['a tolerated mistake', { validity: [1, 0.5], ...solvedIf(false) }, 0],
])('[O4] repair: %s', (_, changes, part) => {
  expect(partsOf(runWith(changes)).repair).toBe(part);
});

test.each<[string, Partial<RunMeasures>]>([
  ['a rejected action', { rejected: 1, validity: [0, 1] }],
  ['a failed action', { failed: 1 }],
  ['a tolerated mistake', { validity: [0.5] }],
])('[O4] a mistake does not raise the score: %s', (_, changes) => {
  for (const kind of KINDS) {
    for (const solved of [true, false]) {
      const without = scoreOf(partsOf(runWith({ kind, solved })));
      expect(scoreOf(partsOf(runWith({ kind, solved, ...changes })))).toBeLessThanOrEqual(without);
    }
  }
});

test('[O4] calls that are not needed lower the plan', () => {
  const calls = { needed: 2, made: 8, missing: 0, superfluous: 6, repeated: 6, premature: 0 };
  expect(partsOf(runWith({ calls }))).toMatchObject({ correctness: 1, plan: 0.25 });
  expect(partsOf(runWith({ calls: { ...calls, made: 1 } })).plan).toBe(1);
});

test('[O4] a conditional call that is made at once costs the plan', () => {
  const calls = { needed: 2, made: 2, missing: 0, superfluous: 0, repeated: 0, premature: 1 };
  expect(partsOf(runWith({ calls }))).toMatchObject({ correctness: 1, plan: 0 });
});

test('[O4] a run without any call shows nothing about the protocol', () => {
  const calls = { needed: 2, made: 0, missing: 2, superfluous: 0, repeated: 0, premature: 0 };
  expect(scoreOf(partsOf(runWith({ ...solvedIf(false), calls, references: NO_REFERENCES })))).toBe(0);
});

test.each([
  [1, 12.706],
  [8, 2.306],
  [72, 1.993],
  [10_000, 1.96],
])("[O4] Student's t for %i degrees of freedom", (freedom, quantile) => {
  expect(student95(freedom)).toBeCloseTo(quantile, 3);
});
