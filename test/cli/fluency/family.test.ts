/** Scripted models from perfect to hopeless over HTTP: the scores order them, and the recommendation follows. */
import { describe, expect, test } from 'vitest';
import { FORM_NAMES } from '../../../cli/fluency/tasks/forms.ts';
import type { FormName } from '../../../cli/fluency/tasks/forms.ts';
import type { RunMeasures } from '../../../cli/fluency/score/measure.ts';
import { recommend } from '../../../cli/fluency/score/recommend.ts';
import type { Recommendation } from '../../../cli/fluency/score/recommend.ts';
import { formScore } from '../../../cli/fluency/score/score.ts';
import type { FormScore } from '../../../cli/fluency/score/score.ts';
import { dataset, FEW, SAMPLE, taskNamed, trial } from './kit.ts';
import type { TrialOptions } from './kit.ts';
import { answering, callsOnly, FAMILY, needsGrammar, textOnly } from './models.ts';
import type { Model } from './models.ts';

const of = (runs: readonly RunMeasures[], form: FormName): RunMeasures[] => runs.filter((run) => run.form === form);

describe('[O4] a perfect model', () => {
  let made: Promise<RunMeasures[]> | null = null;
  const allRuns = (): Promise<RunMeasures[]> => (made ??= trial(FAMILY.perfect));

  test.each(FORM_NAMES)('solves every task in the form %s, with the ideal plan', async (form) => {
    const own = of(await allRuns(), form);
    const imperfect = own.filter(({ solved, makespanMs, idealMs }) => !solved || makespanMs !== idealMs);
    expect(imperfect.map(({ task, reason, makespanMs, idealMs }) => ({ task, reason, makespanMs, idealMs }))).toEqual(
      [],
    );
    expect(own).toHaveLength(dataset.tasks.length);
  });

  test('makes exactly the calls of the plan, without a mistake', async () => {
    const exact = { missing: 0, superfluous: 0, repeated: 0, premature: 0 };
    expect((await allRuns()).filter(({ mistakes }) => mistakes.length > 0)).toEqual([]);
    for (const { calls, task, failed } of await allRuns()) {
      const fails = taskNamed(task).plan.filter((call) => call.fails === true).length;
      expect({ task, failed, ...calls }).toMatchObject({ task, failed: fails, ...exact });
    }
  });

  test.each(FORM_NAMES)('has at least 99 points in the form %s', async (form) => {
    expect(formScore(of(await allRuns(), form)).score).toBeGreaterThan(99);
  });
});

describe('[O4] a model that calls nothing', () => {
  test.each<[string, FormName, Model]>([
    ['the message', 'full', answering(({ task }) => task.message)],
    ['the template of the answer', 'full', answering(({ task }) => task.answer.replaceAll('$', ''))],
    ['all numbers up to 2,999', 'full', answering(() => Array.from({ length: 3_000 }, (_, at) => at).join('; '))],
    ['what it was told', 'tool_calls', answering(({ told }) => told)],
  ])('solves no task by answering with %s (%s)', async (_, form, model) => {
    const runs = await trial(model, { forms: [form] });
    expect(runs).toHaveLength(dataset.tasks.length);
    expect(runs.filter(({ solved }) => solved).map(({ task }) => task)).toEqual([]);
  });
});

describe('[O4] the scores', () => {
  const scores = new Map<string, Promise<FormScore>>();
  /** In the full form, over a sample of the tasks. */
  const scoreOf = (name: keyof typeof FAMILY): Promise<FormScore> => {
    const known = scores.get(name) ?? trial(FAMILY[name], { tasks: SAMPLE, forms: ['full'] }).then(formScore);
    scores.set(name, known);
    return known;
  };
  /** From the best to the worst, with the points between neighbours. */
  const ORDER: readonly (readonly [better: keyof typeof FAMILY, worse: keyof typeof FAMILY, margin: number])[] = [
    ['perfect', 'sloppy', 5],
    ['sloppy', 'mends errors', 5],
    ['mends errors', 'waits for results', 3],
    ['waits for results', 'one call at a time', 2],
    ['waits for results', 'misses references', 2],
    ['one call at a time', 'gives up after errors', 5],
    ['misses references', 'gives up after errors', 5],
    ['gives up after errors', 'ignores the protocol', 20],
    ['gives up after errors', 'answers at once', 20],
    ['ignores the protocol', 'gibberish', 0],
    ['answers at once', 'gibberish', 0],
  ];

  test.each(ORDER)('%s is better than %s by at least %i points', async (better, worse, margin) => {
    expect((await scoreOf(better)).score - (await scoreOf(worse)).score).toBeGreaterThanOrEqual(margin);
  });

  test('reach from 100 to 0', async () => {
    expect((await scoreOf('perfect')).score).toBeGreaterThan(99);
    expect((await scoreOf('gibberish')).score).toBe(0);
    expect((await scoreOf('answers at once')).score).toBe(0);
  });

  /** Parts that a defect must lower below this, and parts that it must not touch. */
  test.each<[keyof typeof FAMILY, Partial<Record<keyof FormScore['parts'], number>>, (keyof FormScore['parts'])[]]>([
    ['sloppy', { protocol: 60 }, ['correctness', 'plan', 'references', 'repair']],
    ['mends errors', { protocol: 60, plan: 75 }, ['correctness', 'references', 'repair']],
    ['waits for results', { plan: 70, references: 10, economy: 75 }, ['correctness', 'protocol', 'repair']],
    ['one call at a time', { plan: 55, references: 10, economy: 65 }, ['correctness', 'protocol', 'repair']],
    ['misses references', { references: 10, plan: 60 }, ['correctness', 'protocol']],
    ['gives up after errors', { correctness: 70, repair: 70 }, []],
    ['ignores the protocol', { correctness: 1, protocol: 1, references: 1, economy: 1 }, []],
    ['answers at once', { correctness: 1, protocol: 1, references: 1, economy: 1 }, []],
    ['gibberish', { correctness: 1, plan: 1, protocol: 1, references: 1, repair: 1, economy: 1 }, []],
  ])('%s: the parts that the defect concerns are lower, and no others', async (name, lower, whole) => {
    const { parts } = await scoreOf(name);
    for (const [part, most] of Object.entries(lower)) {
      expect([part, parts[part as keyof typeof parts]]).toEqual([part, expect.toSatisfy((value) => value < most)]);
    }
    for (const part of whole) expect([part, parts[part]]).toEqual([part, 100]);
  });
});

describe('[O4] the recommendation', () => {
  const recommended = async (model: Model, options: TrialOptions = {}): Promise<Recommendation> => {
    const runs = await trial(model, { tasks: FEW, ...options });
    const forms = FORM_NAMES.map((form) => ({ form, runs: of(runs, form) })).filter((one) => one.runs.length > 0);
    return recommend(forms.map((one) => ({ ...one, score: formScore(one.runs) })));
  };

  test('equal in all forms: the fastest and cheapest one, without a grammar', async () => {
    expect(await recommended(FAMILY.perfect)).toMatchObject({
      form: 'compact',
      protocol: { form: 'compact', dialect: 'auto' },
    });
  });

  test('good at native calls only: tool_calls', async () => {
    expect(await recommended(callsOnly)).toMatchObject({ form: 'tool_calls', protocol: { dialect: 'tool_calls' } });
  });

  test('good at text only: no tool_calls', async () => {
    expect(await recommended(textOnly)).toMatchObject({ form: 'compact', protocol: { dialect: 'auto' } });
  });

  test('mistakes that only a grammar prevents: the grammar', async () => {
    expect(await recommended(needsGrammar)).toMatchObject({ form: 'grammar', protocol: { dialect: 'protocol' } });
    expect(await recommended(FAMILY.sloppy)).toMatchObject({ form: 'grammar' });
    expect(await recommended(FAMILY.sloppy, { forms: ['full', 'compact'] })).toMatchObject({ form: 'compact' });
  });

  test('hopeless in all forms: none', async () => {
    expect(await recommended(FAMILY['ignores the protocol'])).toMatchObject({ form: null, protocol: null });
  });
});

test('[O4] work that is stopped starts no further run, and keeps those that have ended', async () => {
  const stop = new AbortController();
  const done = (count: number): void => {
    if (count === 3) stop.abort();
  };
  const runs = await trial(FAMILY.perfect, { forms: ['full'], concurrency: 1, signal: stop.signal, done });
  expect(runs.map(({ solved }) => solved)).toEqual([true, true, true]);
  // The kinds take turns.
  expect(new Set(runs.map(({ kind }) => kind)).size).toBe(3);
});
