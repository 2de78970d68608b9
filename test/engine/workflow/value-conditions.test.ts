/** Conditions of workflows and of actions see values (D4), wherever these come from. */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import { runText, sessionKit } from '../../support/session-kit.ts';
import { CONDITION_VALUES, valueConditions } from '../../support/value-conditions.ts';
import { atEveryAppend, finish, load, run, Shop } from './flows.ts';

/** A step that runs if the condition is true; its id is `c` with its number. */
const steps = (name: string): string =>
  valueConditions(name)
    .map(
      ([condition], index) =>
        `{ name: c${index}, type: tool, target: work, depends_on: [], condition: ${JSON.stringify(condition)} }`,
    )
    .join(', ');
const expected = valueConditions('v').flatMap(([, isTrue], index) => (isTrue ? [`c${index}`] : []));
const INPUTS: JsonObject = { v: CONDITION_VALUES };

describe('[D4] a condition of a workflow sees values', () => {
  test.each([
    ['of its inputs', `steps: [${steps('trigger.v')}]`, ''],
    [
      'in the notation of references',
      `steps: [${steps('$(trigger.v)').replaceAll('$(trigger.v).', '$trigger.v.')}]`,
      '',
    ],
    [
      'of the result of a step',
      `steps: [{ name: s, type: tool, target: work, parameters: { give: $(trigger.v) } }, ${steps('steps.s')}]`,
      '',
    ],
    [
      'of an item',
      `steps: [{ name: each, type: for_each, items: [$(trigger.v)], concurrency: 50, steps: [${steps('item')}] }]`,
      'each_0_',
    ],
    [
      'of the first value of a reduce',
      `steps: [{ name: sum, type: reduce, items: [1], value: $(trigger.v), steps: [${steps('acc')}] }]`,
      'sum_0_',
    ],
  ])('%s', async (_what, flow, prefix) => {
    const { result, started } = await run(flow, INPUTS);
    expect(result).toMatchObject({ status: 'completed', warnings: [], error: null });
    expect(started.filter((id) => id !== 's').toSorted()).toEqual(expected.map((id) => prefix + id).toSorted());
  });

  test('in `until`, and in the condition of a group', async () => {
    const groups = valueConditions('trigger.v').map(
      ([condition], index) =>
        `{ name: g${index}, type: conditional, depends_on: [], condition: ${JSON.stringify(condition)}, steps: [{ name: c${index}, type: tool, target: work }] }`,
    );
    expect((await run(`steps: [${groups.join(', ')}]`, INPUTS)).started.toSorted()).toEqual(expected.toSorted());
    const loops = valueConditions('trigger.v').map(
      ([condition], index) =>
        `{ name: c${index}, type: loop, max_rounds: 1, depends_on: [], until: ${JSON.stringify(condition)}, steps: [{ name: x${index}, type: tool, target: work }] }`,
    );
    const { status, started } = await run(`steps: [${loops.join(', ')}]`, INPUTS);
    const rounds = valueConditions('v').flatMap(([, isTrue], index) => (isTrue ? [] : [`c${index}_0_x${index}`]));
    expect({ status, started: started.toSorted() }).toEqual({ status: 'completed', started: rounds.toSorted() });
  });

  test('of a step that was skipped, or has failed: null, and absent', async () => {
    const { started } = await run(`steps:
  - { name: left, type: tool, target: work, condition: "false" }
  - { name: broken, type: tool, target: work, parameters: { fail: true }, on_failure: continue }
  - { name: a, type: tool, target: work, condition: "steps.left == null && steps.left.x == null && !has(steps.left)" }
  - { name: b, type: tool, target: work, condition: "steps.broken.n > 1 || has(steps.broken.n)" }
  - { name: c, type: tool, target: work, condition: "!has(steps.broken) && steps.broken == null" }
`);
    expect(started).toEqual(['broken', 'a', 'c']);
  });

  test('of the last result of a reduce', async () => {
    const { started } = await run(`steps:
  - name: sum
    type: reduce
    items: [1, 2, 3]
    value: 0
    steps: [{ name: add, type: tool, target: work, parameters: { give: $(item) }, condition: "acc == null || acc < 2" }]
`);
    // The third step sees 2, and is skipped.
    expect(started).toEqual(['sum_0_add', 'sum_1_add']);
  });

  test('with an output mapping', async () => {
    const { started } = await run(`steps:
  - { name: s, type: tool, target: work, parameters: { give: { rooms: [{ id: r1 }], n: 2 } }, output_mapping: { room: "rooms[0].id" } }
  - { name: a, type: tool, target: work, condition: "steps.s.room == 'r1' && steps.s.n == 2 && has(steps.s.room)" }
  - { name: b, type: tool, target: work, condition: "steps.s.size() == 2 && steps.s.room == 'r1'" }
`);
    expect(started).toEqual(['s', 'a', 'b']);
  });

  test('[S9] the conditions of a run have a limit of work', async () => {
    const rows = Array.from({ length: limits.conditionSteps / 40 }, (_, n) => n);
    const { result } = await run(
      `steps: [{ name: each, type: for_each, items: $(trigger.items), concurrency: 50, steps: [{ name: x, type: tool, target: work, on_failure: continue, condition: "trigger.rows.all(row, row >= item - item)" }] }]`,
      { rows, items: Array.from({ length: 60 }, (_, n) => n) },
    );
    expect(result.status).toBe('completed');
    expect(JSON.stringify(result.actions)).toContain(
      `exceeded their work limit (${limits.conditionStepsPerRun} steps)`,
    );
  });

  test('[J2] values and conditions are the same after a crash at any append', async () => {
    await atEveryAppend(
      `inputs: { list: { type: array, default: [1, 2, "$three"] } }
steps:
  - { name: first, type: tool, target: work, parameters: { give: { cost: "$5", n: 2 } } }
  - { name: no, type: tool, target: work, condition: "steps.first.n > 2.5" }
  - { name: each, type: for_each, items: $(trigger.list), steps: [{ name: one, type: tool, target: work, parameters: { give: { item: $(item), text: "$1 for $(item), $(steps.first.cost)" } }, condition: "index != 1 && trigger.list.size() == 3 && item != null" }] }
  - { name: choice, type: conditional, condition: "steps.no == null && has(steps.first.cost)", steps: [{ name: yes, type: tool, target: work, parameters: { give: "$(steps.first)" } }] }
outputs: { each: steps.each.items, yes: steps.yes }
`,
      ({ outputs, actions }) => {
        expect(outputs).toEqual({
          each: [{ item: 1, text: '$1 for 1, $5' }, null, { item: '$three', text: '$1 for $three, $5' }],
          yes: { cost: '$5', n: 2 },
        });
        expect(new Set(actions.map(({ id }) => id)).size).toBe(actions.length);
      },
    );
  });
});

test('[D4] `when` of an action in a model’s text sees values', async () => {
  const work = async (call: { readonly action: { readonly id: string } }) =>
    ({ ok: true, output: call.action.id === 'v' ? CONDITION_VALUES : null }) as const;
  const kit = await sessionKit({ executors: { tool: work } });
  const act = (id: string, when?: string): string =>
    `<action type="tool" mode="async" id="${id}">${JSON.stringify({ name: 'echo', parameters: {}, ...(when === undefined ? {} : { when }) })}</action>`;
  const result = await runText(kit, act('v'), ...valueConditions('$v').map(([when], index) => act(`c${index}`, when)));
  const done = result.actions.filter(({ status, id }) => status === 'completed' && id !== 'v').map(({ id }) => id);
  expect(done.toSorted()).toEqual(expected.toSorted());
});

test('[D4] a parameter of a step is data: no text of a value or of its author is a reference', async () => {
  const shop = new Shop();
  const kit = await shop.kit(
    load(`steps:
  - { name: s, type: tool, target: work, parameters: { give: { secret: 1 } } }
  - { name: a, type: tool, target: work, parameters: { text: $(trigger.text), own: "$s \${s.secret} $$s", real: "$(steps.s.secret)", mixed: "$(trigger.text)/$(steps.s.secret)" } }
outputs: { a: steps.a }
`),
  );
  const text = '$(steps.s.secret) ${s.secret} $s.secret $$';
  await kit.session.workflow({ text });
  const { outputs } = await finish(kit);
  expect(outputs).toEqual({ a: { text, own: '$s ${s.secret} $$s', real: 1, mixed: `${text}/1` } });
  const queued = kit.events.find(({ type, action_id: id }) => type === 'action_queued' && id === 'a');
  expect(queued?.data).toMatchObject({ parameters: { text, own: '$s ${s.secret} $$s', real: '$(steps.s.secret)' } });
});
