/** What the runtime makes of sloppy models: their mistakes cost at most one generation, never the answer. */
import { expect, test } from 'vitest';
import { SHAPE_NAMES } from '../../../cli/scripted-llm/shapes.ts';
import { BEHAVIOURS } from './behaviours.ts';
import { single, taskNamed } from './kit.ts';

/** Without anything that has to be read first. */
const TASKS = [
  'two-stations',
  'value-of-stock',
  'codes-then-train',
  'first-reading',
  'highest-reading',
  'badge-of-employee',
  'sum-of-stocks',
  'stock-and-price',
].map(taskNamed);

/** Every behaviour with two tasks, in the chunks of all providers in turn. */
const PARTS = BEHAVIOURS.flatMap((behaviour, at) =>
  [0, 1].map((round) => ({
    behaviour,
    task: TASKS[(at + 3 * round) % TASKS.length] ?? TASKS[0],
    shape: SHAPE_NAMES[(2 * at + round) % SHAPE_NAMES.length] ?? 'openai',
  })),
);

test('[O4] there are forty different parts', () => {
  expect(new Set(PARTS.map(({ behaviour, task }) => `${task?.name}/${behaviour.name}`)).size).toBe(40);
  expect(new Set(PARTS.map(({ shape }) => shape))).toEqual(new Set(SHAPE_NAMES));
});

test.each(PARTS.map((part) => [part.behaviour.name, part.task?.name ?? '', part.shape, part] as const))(
  '[O4] a model that %s solves %s (%s) with at most one additional generation',
  async (_behaviour, _task, _shape, { behaviour, task, shape }) => {
    if (task === undefined) throw new Error('the part has no task');
    const { bareText, model, careful, sloppy } = behaviour;
    const { run, measures } = await single(model, task, {
      shape,
      chars: 7,
      change: (agent) => ({
        ...agent,
        protocol: { ...agent.protocol, ...(bareText === undefined ? {} : { bareText }) },
      }),
    });
    expect(measures.reason).toBeNull();
    expect(run.document.iterations).toBeLessThanOrEqual(careful + (sloppy ? 1 : 0));
  },
);
