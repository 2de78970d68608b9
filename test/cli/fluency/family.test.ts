/** Scripted models from perfect to hopeless over HTTP: the scores order them, and say what each does wrong. */
import { describe, expect, test } from 'vitest';
import { FORM_NAMES } from '../../../cli/fluency/tasks/forms.ts';
import type { FormName } from '../../../cli/fluency/tasks/forms.ts';
import type { RunMeasures } from '../../../cli/fluency/score/measure.ts';
import { formScore } from '../../../cli/fluency/score/score.ts';
import { dataset, SAMPLE, taskNamed, trial } from './kit.ts';
import { answering, gibberish, perfect, waiting } from './models.ts';
import type { Model } from './models.ts';

const of = (runs: readonly RunMeasures[], form: FormName): RunMeasures[] => runs.filter((run) => run.form === form);

describe('[O4] a perfect model', () => {
  let made: Promise<RunMeasures[]> | null = null;
  /** The ideal plans of the other forms are those of the full form. */
  const PLANNED: readonly FormName[] = ['full', 'tool_calls'];
  const others = FORM_NAMES.filter((form) => !PLANNED.includes(form));
  const measured = async (): Promise<RunMeasures[]> => [
    ...(await trial(perfect, { forms: PLANNED })),
    ...(await trial(perfect, { forms: others, tasks: SAMPLE })),
  ];
  const allRuns = (): Promise<RunMeasures[]> => (made ??= measured());

  test.each(FORM_NAMES)('solves the tasks in the form %s, with the ideal plan', async (form) => {
    const own = of(await allRuns(), form);
    const imperfect = own.filter(({ solved, makespanMs, idealMs }) => !solved || makespanMs !== idealMs);
    expect(imperfect.map(({ task, reason, makespanMs, idealMs }) => ({ task, reason, makespanMs, idealMs }))).toEqual(
      [],
    );
    expect(own).toHaveLength((PLANNED.includes(form) ? dataset.tasks : SAMPLE).length);
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

test('[O4] the scores fall from 100 to 0, from the best model to the worst one', async () => {
  const models = [perfect, waiting, gibberish];
  const scores = await Promise.all(
    models.map(async (model) => formScore(await trial(model, { tasks: SAMPLE, forms: ['full'] }))),
  );
  const [best, middle, worst] = scores.map(({ score }) => score);
  expect([best, middle, worst]).toEqual([
    expect.toSatisfy((score) => score > 99),
    expect.toSatisfy((score) => score < 90 && score > 10),
    0,
  ]);
  // Waiting costs the plan, not the answers.
  expect(scores[1]?.parts).toMatchObject({
    correctness: 100,
    protocol: 100,
    plan: expect.toSatisfy((part) => part < 70),
  });
});

test('[O4] work that is stopped starts no further run, and keeps those that have ended', async () => {
  const stop = new AbortController();
  const done = (count: number): void => {
    if (count === 3) stop.abort();
  };
  const runs = await trial(perfect, { forms: ['full'], concurrency: 1, signal: stop.signal, done });
  expect(runs.map(({ solved }) => solved)).toEqual([true, true, true]);
  // The kinds take turns.
  expect(new Set(runs.map(({ kind }) => kind)).size).toBe(3);
});
