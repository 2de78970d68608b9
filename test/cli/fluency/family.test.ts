/** Scripted models from perfect to hopeless over HTTP: the scores order them, and say what each does wrong. */
import { describe, expect, test } from 'vitest';
import { FORM_NAMES } from '../../../cli/fluency/tasks/forms.ts';
import type { FormName } from '../../../cli/fluency/tasks/forms.ts';
import type { RunMeasures } from '../../../cli/fluency/score/measure.ts';
import { formScore } from '../../../cli/fluency/score/score.ts';
import type { FormScore } from '../../../cli/fluency/score/score.ts';
import { dataset, SAMPLE, taskNamed, trial } from './kit.ts';
import { answering, FAMILY } from './models.ts';
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
    expect(formScore(own).score).toBeGreaterThan(99);
  });

  test('makes exactly the calls of the plan, without a mistake', async () => {
    const exact = { missing: 0, superfluous: 0, repeated: 0, premature: 0 };
    expect((await allRuns()).filter(({ mistakes }) => mistakes.length > 0)).toEqual([]);
    for (const { calls, task, failed } of await allRuns()) {
      const fails = taskNamed(task).plan.filter((call) => call.fails === true).length;
      expect({ task, failed, ...calls }).toMatchObject({ task, failed: fails, ...exact });
    }
  });
});

describe('[O4] a model that calls nothing', () => {
  test.each<[string, FormName, Model]>([
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
  test('fall from 100 to 0, from the best model to the worst one', async () => {
    const scored = await Promise.all(
      ['perfect', 'sloppy', 'mends errors', 'waits for results', 'gibberish'].map(
        async (name) => (await scoreOf(name as keyof typeof FAMILY)).score,
      ),
    );
    expect(scored).toEqual(scored.toSorted((a, b) => b - a));
    expect(new Set(scored).size).toBe(5);
    expect([scored[0], scored.at(-1)]).toEqual([expect.toSatisfy((best) => best > 99), 0]);
  });

  /** Parts that a defect must lower below this, and parts that it must not touch. */
  test.each<[keyof typeof FAMILY, Partial<Record<keyof FormScore['parts'], number>>, (keyof FormScore['parts'])[]]>([
    ['sloppy', { protocol: 60 }, ['correctness', 'plan', 'references', 'repair']],
    ['mends errors', { protocol: 60, plan: 75 }, ['correctness', 'references', 'repair']],
    ['waits for results', { plan: 70, references: 10, economy: 75 }, ['correctness', 'protocol', 'repair']],
    ['misses references', { references: 10, plan: 60 }, ['correctness', 'protocol']],
    ['gives up after errors', { correctness: 70, repair: 70 }, []],
    ['ignores the protocol', { correctness: 1, protocol: 1, references: 1, economy: 1 }, []],
    ['gibberish', { correctness: 1, plan: 1, protocol: 1, references: 1, repair: 1, economy: 1 }, []],
  ])('%s: the parts that the defect concerns are lower, and no others', async (name, lower, whole) => {
    const { parts } = await scoreOf(name);
    for (const [part, most] of Object.entries(lower)) {
      expect([part, parts[part as keyof typeof parts]]).toEqual([part, expect.toSatisfy((value) => value < most)]);
    }
    for (const part of whole) expect([part, parts[part]]).toEqual([part, 100]);
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
