/** The actions that a workflow declares (M6), one by one, with the step outcomes that the test sets. */
import { describe, expect, test } from 'vitest';
import type { BoundName, DeclaredAction, TerminalStatus } from '../../../src/domain/action.ts';
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { WorkflowDefinition, WorkflowStep } from '../../../src/domain/manifests/workflow.ts';
import { OUTPUTS } from '../../../src/domain/workflow-actions.ts';
import { workflowActions } from '../../../src/engine/workflow/workflow.ts';
import { fillIn } from '../../../src/protocol/references/substitution.ts';
import { load } from './flows.ts';
import { definition, step } from './steps.ts';
import type { StepText } from './steps.ts';

interface Ending {
  readonly status?: TerminalStatus;
  readonly output?: Json;
  readonly note?: string;
}

/** A declared action. Results in its parameters are shown as `${id.path}`, and what the names of its condition mean. */
type Shown = Pick<DeclaredAction, 'id' | 'type' | 'name' | 'when' | 'onError' | 'timeoutMs' | 'retry' | 'dependsOn'> & {
  readonly parameters: JsonObject;
  readonly names?: Readonly<Record<string, BoundName>>;
};

interface Declared {
  readonly actions: readonly Shown[];
  /** Ids of the actions whose result is the answer. */
  readonly answers: readonly string[];
  readonly bytes: number;
  readonly error: unknown;
}

/** Runs a workflow's program to its end. The outcomes of the steps are in `endings`, default null. */
async function write(
  workflow: WorkflowDefinition | string,
  {
    inputs = {},
    endings = {},
    declared: known = [],
  }: { inputs?: JsonObject; endings?: Record<string, Ending>; declared?: readonly string[] } = {},
): Promise<Declared> {
  const actions: Shown[] = [];
  const answers: string[] = [];
  let bytes = 0;
  let error: unknown = null;
  const view = {
    declared: (id: string) => known.includes(id),
    settled: async (id: string) => {
      const { status = 'completed' as const, output = null, note = null } = endings[id] ?? {};
      return { status, output, note };
    },
  };
  try {
    const program = typeof workflow === 'string' ? load(workflow).workflow : workflow;
    for await (const piece of workflowActions(program, inputs, view)) {
      actions.push(shown(piece.declared));
      if (piece.answers === true) answers.push(piece.declared.id);
      bytes += new TextEncoder().encode(JSON.stringify(piece)).length;
    }
  } catch (fault) {
    error = fault;
  }
  return { actions, answers, bytes, error };
}

function shown({ parameters = {}, references: _references, bound, ...action }: DeclaredAction): Shown {
  const { texts = [], names = {} } = bound ?? {};
  const named = texts.map(({ at, parts }) => ({
    at,
    parts: parts.map((part) =>
      typeof part === 'string' ? part : { name: [part.name, ...part.path].join('.'), path: [], raw: part.raw },
    ),
  }));
  const { value } = fillIn(parameters, named, (name) => ({ known: true, value: `\${${name}}` }));
  return { ...action, parameters: value, ...(Object.keys(names).length === 0 ? {} : { names }) };
}

/** Steps that call the tool `work`, for a list in YAML. */
const works = (...names: string[]): string =>
  names.map((name) => `{ name: ${name}, type: tool, target: work }`).join(', ');

const only = async (given: StepText, options: Parameters<typeof write>[1] = {}): Promise<Shown | undefined> =>
  (await write(definition([given]), options)).actions[0];

describe('[M6] a step is an action', () => {
  const COMMON = { id: 'a', type: 'tool', name: 'work', parameters: {}, dependsOn: [] };
  const cases: readonly (readonly [title: string, step: Partial<WorkflowStep>, action: JsonObject])[] = [
    ['plain', {}, COMMON],
    [
      'a relic and its action',
      { type: 'relic', target: 'store', action: 'put' },
      { ...COMMON, type: 'relic', name: 'store.put' },
    ],
    ['a relic without an action', { type: 'relic', target: 'store' }, { ...COMMON, type: 'relic', name: 'store' }],
    ['a tool, which ignores the action field', { action: 'put' }, COMMON],
    [
      'a relic without a name',
      { type: 'relic', target: null, action: 'put' },
      { ...COMMON, type: 'relic', name: '.put' },
    ],
    ['an agent', { type: 'agent', target: 'scout' }, { ...COMMON, type: 'agent', name: 'scout' }],
    [
      'a model by name',
      { type: 'llm', target: 'small', parameters: { prompt: 'x' } },
      { id: 'a', type: 'llm', name: 'llm', parameters: { model: 'small', prompt: 'x' }, dependsOn: [] },
    ],
    [
      'a model from a parameter',
      { type: 'llm', target: 'small', parameters: { model: 'big' } },
      { id: 'a', type: 'llm', name: 'llm', parameters: { model: 'big' }, dependsOn: [] },
    ],
    ['any model', { type: 'llm', target: null }, { id: 'a', type: 'llm', name: 'llm', parameters: {}, dependsOn: [] }],
    ['a time-out', { timeoutMs: 1_500 }, { ...COMMON, timeoutMs: 1_500 }],
    [
      'retries',
      { retry: { maxAttempts: 4, backoff: 'linear', delayMs: 250, maxDelayMs: 2_000 } },
      { ...COMMON, retry: { maxAttempts: 4, backoff: 'linear', delayMs: 250, maxDelayMs: 2_000 } },
    ],
    ['on_failure: continue', { onFailure: 'continue' }, { ...COMMON, onError: 'skip' }],
    ['on_failure: retry', { onFailure: 'retry' }, { ...COMMON, onError: 'retry' }],
    ['on_failure: skip', { onFailure: 'skip' }, COMMON],
    [
      'a condition',
      { condition: 'trigger.n > 1' },
      { ...COMMON, when: 'trigger.n > 1', names: { trigger: { input: true } } },
    ],
  ];
  test.each(cases)('%s', async (_title, given, action) => {
    expect(await only({ name: 'a', ...given }, { inputs: { n: 3 } })).toEqual(action);
  });

  test('each step follows the previous one, unless it has depends_on; referenced steps are added, each once', async () => {
    const { actions } = await write(
      definition([
        { name: 'a' },
        { name: 'b' },
        { name: 'c', dependsOn: ['a'], parameters: { x: '$(steps.b.n)', y: ['$(steps.a)', { z: '$(steps.b)' }] } },
        { name: 'd', dependsOn: [] },
      ]),
    );
    expect(actions.map(({ id, dependsOn: after }) => [id, after])).toEqual([
      ['a', []],
      ['b', ['a']],
      ['c', ['a', 'b']],
      ['d', []],
      [OUTPUTS, []],
    ]);
  });

  test('an unknown step name fails the workflow', async () => {
    const { error } = await write(definition([{ name: 'a' }, { name: 'b', parameters: { x: '$(steps.nope)' } }]));
    expect(error).toMatchObject({
      name: 'StepFailed',
      code: 'step_failed',
      message: 'There is no step "nope" (known: a, b)',
    });
  });
});

describe('[M6] values', () => {
  const inputs = { n: 3, who: 'me', cost: '$5', list: [1, 'b'], deep: { at: { last: true } }, none: null };
  const values: readonly (readonly [written: Json, value: Json])[] = [
    ['$(trigger.n)', 3],
    [' $( trigger.n ) ', 3],
    ['$(trigger)', { ...inputs, cost: '$5' }],
    ['$(trigger.list)', [1, 'b']],
    ['$(trigger.list[1])', 'b'],
    ['$(trigger.list.1)', 'b'],
    ['$(trigger.deep.at.last)', true],
    ['$(trigger.nope)', null],
    ['$(trigger.who.length)', null],
    ['$(trigger.toString)', null],
    ['$(item)', null],
    ['$(date)', '$(date)'],
    ['$(steps.s.n)', '${s.n}'],
    ['$(steps.s.rooms[0].beds[1]) and $(steps.s.a[1])', '${s.rooms.0.beds.1} and ${s.a.1}'],
    ['$(steps.s.rooms[0].beds[1])', '${s.rooms.0.beds.1}'],
    ['$(steps.s)', '${s}'],
    ['n $( trigger.n )!', 'n 3!'],
    ['$(1) and $(my word)', '$(1) and $(my word)'],
    ['$(steps.s.a-b_c)', '${s.a-b_c}'],
    [
      ['$(trigger.list)', '$(trigger.list.2)', '$(trigger.deep.at.0)'],
      [[1, 'b'], null, null],
    ],
    ['n $(trigger.n), $(trigger.list), [$(trigger.none)]', 'n 3, [1,"b"], []'],
    ['costs $(trigger.cost) or $1', 'costs $5 or $1'],
    ['$(steps.s.a) and $(steps.s.b), $x $(other)', '${s.a} and ${s.b}, $x $(other)'],
    [
      ['$(trigger.n)', { x: '$1' }, 7, null, true],
      [3, { x: '$1' }, 7, null, true],
    ],
  ];
  test.each(values)('%j becomes %j', async (written, value) => {
    const { actions } = await write(definition([{ name: 's' }, { name: 'a', parameters: { v: written } }]), { inputs });
    expect(actions[1]?.['parameters']).toEqual({ v: value });
  });

  const mappings: readonly (readonly [path: string, reference: string])[] = [
    ['steps.s.total.x', '${s.deep.value.x}'],
    ['steps.s.other', '${s.other}'],
    ['steps.s.whole', '${s}'],
    ['steps.s.last', '${s.rooms.1.id}'],
    ['steps.s.whole.x', '${s.x}'],
    ['steps.s.toString', '${s.toString}'],
  ];
  test.each(mappings)('with an output mapping, %s becomes %s', async (path, reference) => {
    const outputMapping = { total: 'deep.value', whole: '.', last: 'rooms[1].id' };
    const { actions } = await write(
      definition([
        { name: 's', outputMapping },
        { name: 'a', parameters: { v: `$(${path})` } },
      ]),
    );
    expect(actions[1]?.['parameters']).toEqual({ v: reference });
  });

  const S = { steps: { members: { s: { result: 's', path: [] } } } } as const;
  const TRIGGER = { trigger: { input: true } } as const;
  const conditions: readonly (readonly [condition: string, when: string, names: Record<string, BoundName>])[] = [
    ['steps.s.total > 1', 'steps.s.deep.value > 1', S],
    ['has(steps.s.total)', 'has(steps.s.deep.value)', S],
    ['has(steps.s)', 'has(steps.s)', S],
    ['has($(steps.s.rooms[0]))', '(steps.s.rooms[0] != null)', S],
    ['has(trigger.n) && !has(trigger.nope)', 'has(trigger.n) && !has(trigger.nope)', TRIGGER],
    ['trigger.who == "trigger.who"', 'trigger.who == "trigger.who"', TRIGGER],
    ['steps.unknown.x', 'steps.unknown.x', { steps: { members: {} } }],
    [
      'item == null && !has(index)',
      'item == null && !(index != null)',
      { item: { value: null }, index: { value: null } },
    ],
    ["steps.s.rooms[0].id == 'r1'", "steps.s.rooms[0].id == 'r1'", S],
    ["$(steps.s.rooms[0].id) == 'r1'", "steps.s.rooms[0].id == 'r1'", S],
    [
      `'$(steps.s.kind)' == "item" && $(trigger.list).size() > 1`,
      'steps.s.kind == "item" && trigger.list.size() > 1',
      { ...S, ...TRIGGER },
    ],
    ['steps.s.rows.exists(item, item.price > 3)', 'steps.s.rows.exists(item, item.price > 3)', S],
    ['$trigger.who == "abc"', 'trigger.who == "abc"', TRIGGER],
    ['trigger.who in ["trigger", "abd"]', 'trigger.who in ["trigger", "abd"]', TRIGGER],
  ];
  test.each(conditions)('[D4] the condition %s becomes %s, with bound names', async (condition, when, names) => {
    const { actions } = await write(
      definition([
        { name: 's', outputMapping: { total: 'deep.value' } },
        { name: 'a', condition },
      ]),
      { inputs },
    );
    expect(actions[1]).toMatchObject({ when, names });
    expect(Object.keys(actions[1]?.names ?? {})).toEqual(Object.keys(names));
  });
});

describe('[M6] outputs', () => {
  test('are one action, which is the answer; omitted ones are null', async () => {
    const outputs = { n: 'steps.a.n', who: 'trigger.who', left: 'steps.b', failed: 'steps.c' };
    const { actions, answers } = await write(
      definition([{ name: 'a' }, { name: 'b' }, { name: 'c', onFailure: 'skip' }], { outputs }),
      {
        inputs: { who: 'me' },
        endings: { b: { status: 'skipped' }, c: { status: 'failed' } },
      },
    );
    expect(actions.at(-1)).toEqual({
      id: OUTPUTS,
      type: 'tool',
      name: '_collect',
      parameters: { n: '${a.n}', who: 'me', left: null, failed: null },
      dependsOn: ['a'],
    });
    expect(answers).toEqual([OUTPUTS]);
  });

  test('[J2] actions in the journal are not declared again', async () => {
    const { actions } = await write(definition([{ name: 'a' }, { name: 'b' }]), { declared: ['a', OUTPUTS] });
    expect(actions.map(({ id }) => id)).toEqual(['b']);
  });
});

describe('[M6] groups', () => {
  const COLLECTS = { type: 'tool', name: '_collect' };
  const WORK = { type: 'tool', name: 'work', parameters: {} };

  test('a conditional depends on its gate, writes the chosen branch, and skips referenced steps of the other', async () => {
    const group = `{ name: choice, type: conditional, condition: trigger.yes, steps: [${works('x', 'y')}], else: [${works('z', 'unnamed', 'x')}] }`;
    const after = `{ name: after, type: tool, target: work, parameters: { x: $(steps.x), z: $(steps.z) } }`;
    const yes = await write(`steps: [${works('first')}, ${group}, ${after}]`, { inputs: { yes: true } });
    expect(yes.actions.slice(1, -1)).toEqual([
      {
        id: 'choice_gate',
        ...COLLECTS,
        parameters: {},
        dependsOn: ['first'],
        when: 'trigger.yes',
        names: { trigger: { input: true } },
      },
      { id: 'after', ...WORK, parameters: { x: '${x}', z: '${z}' }, dependsOn: ['choice', 'x', 'z'] },
      { id: 'z', ...COLLECTS, parameters: {}, dependsOn: ['choice_gate'], when: 'false' },
      { id: 'x', ...WORK, dependsOn: [] },
      { id: 'y', ...WORK, dependsOn: ['x'] },
      { id: 'choice', ...COLLECTS, parameters: { x: '${x}', y: '${y}' }, dependsOn: ['x', 'y'] },
    ]);
    const no = await write(`steps: [${group}, ${after}]`, {
      inputs: { yes: false },
      endings: { choice_gate: { status: 'skipped' } },
    });
    expect(no.actions.map(({ id }) => id)).toEqual(['choice_gate', 'after', 'z', 'unnamed', 'x', 'choice', OUTPUTS]);
  });

  test('without another branch, or after a cancelled gate, referenced steps are skipped', async () => {
    const group = (more: string): string =>
      `{ name: choice, type: conditional, condition: trigger.yes, steps: [${works('x')}]${more} }`;
    const after = (name: string): string =>
      `{ name: after, type: tool, target: work, parameters: { x: $(steps.${name}), z: $(trigger.z) } }`;
    const skipped = await write(`steps: [${group('')}, ${after('x')}]`, {
      endings: { choice_gate: { status: 'skipped' } },
    });
    expect(skipped.actions.filter(({ when }) => when === 'false').map(({ id }) => id)).toEqual(['x']);
    const nothing = { id: 'choice', ...COLLECTS, parameters: {}, dependsOn: ['choice_gate'] };
    expect(skipped.actions.find(({ id }) => id === 'choice')).toEqual(nothing);
    const both = await write(`steps: [${group(`, else: [${works('z')}]`)}, ${after('z')}]`, {
      endings: { choice_gate: { status: 'cancelled' } },
    });
    expect(both.actions.filter(({ when }) => when === 'false').map(({ id }) => id)).toEqual(['z']);
  });

  test('a for_each writes its steps once per item, and collects the last outcome of each', async () => {
    const { actions } = await write(
      `steps:
  - { name: list, type: tool, target: work }
  - name: each
    type: for_each
    items: $(steps.list)
    steps:
      - { name: one, type: tool, target: work, parameters: { v: $(item.n), at: $(index), text: no. $(index) } }
      - { name: two, type: tool, target: work }
`,
      { endings: { each_items: { output: { items: [{ n: '$a' }, { n: 2 }] } } } },
    );
    const rows = Object.fromEntries(actions.map(({ id, parameters, dependsOn: after }) => [id, [parameters, after]]));
    expect(rows).toEqual({
      list: [{}, []],
      each_items: [{ items: '${list}' }, ['list']],
      each_0_one: [{ v: '$a', at: 0, text: 'no. 0' }, []],
      each_0_two: [{}, ['each_0_one']],
      each_1_one: [{ v: 2, at: 1, text: 'no. 1' }, []],
      each_1_two: [{}, ['each_1_one']],
      each: [{ items: ['${each_0_two}', '${each_1_two}'] }, ['each_0_two', 'each_1_two']],
      [OUTPUTS]: [{}, []],
    });
  });

  test('a for_each in a for_each, and a branch in one, have the ids of their items', async () => {
    const { actions } = await write(
      `steps:
  - name: outer
    type: for_each
    items: $(trigger.list)
    steps:
      - name: inner
        type: for_each
        items: $(item)
        steps: [{ name: x, type: tool, target: work, condition: item > 1 && index == 0 && has(item) }]
      - { name: choice, type: conditional, condition: has(item.n), steps: [${works('yes')}], else: [${works('no')}] }
      - name: last
        type: tool
        target: work
        parameters: { yes: $(steps.yes), no: $(steps.no), inner: $(steps.inner) }
`,
      { endings: { outer_items: { output: { items: [[5, 6]] } }, outer_0_inner_items: { output: { items: [5, 6] } } } },
    );
    const rows = actions.map(({ id, dependsOn: after, when = null }) => [id, after, when]);
    const names = Object.fromEntries(actions.map((action) => [action.id, action.names]));
    expect(names['outer_0_inner_1_x']).toEqual({
      item: { result: 'outer_0_inner_items', path: ['items', '1'] },
      index: { value: 1 },
    });
    expect(names['outer_0_choice_gate']).toEqual({ item: { result: 'outer_items', path: ['items', '0'] } });
    expect(rows).toEqual(
      expect.arrayContaining([
        ['outer_0_inner_items', [], null],
        ['outer_0_inner_0_x', [], 'item > 1 && index == 0 && (item != null)'],
        ['outer_0_inner_1_x', [], 'item > 1 && index == 0 && (item != null)'],
        ['outer_0_inner', ['outer_0_inner_0_x', 'outer_0_inner_1_x'], null],
        ['outer_0_choice_gate', ['outer_0_inner'], 'has(item.n)'],
        ['outer_0_no', ['outer_0_choice_gate'], 'false'],
        ['outer_0_yes', [], null],
        ['outer_0_choice', ['outer_0_yes'], null],
        ['outer_0_last', ['outer_0_choice', 'outer_0_yes', 'outer_0_no', 'outer_0_inner'], null],
        ['outer', ['outer_0_last'], null],
      ]),
    );
    expect(rows).toHaveLength(12);
  });

  test('a for_each without steps or without items collects nothing', async () => {
    const each = (steps: readonly WorkflowStep[]): StepText => ({ name: 'each', type: 'for_each', items: 'x', steps });
    const collected = { id: 'each', ...COLLECTS, parameters: { items: [] }, dependsOn: [] };
    const stepless = await write(definition([each([])]), { endings: { each_items: { output: { items: [1, 2] } } } });
    expect(stepless.actions.at(-2)).toEqual(collected);
    const empty = await write(definition([each([step({ name: 'x' })])]), {
      endings: { each_items: { output: { items: [] } } },
    });
    expect(empty.actions.at(-2)).toEqual(collected);
  });

  test('parallel steps have only their own dependencies, and run in sequence under a low limit', async () => {
    const { actions } = await write(`steps:
  - name: both
    type: parallel
    concurrency: 1
    steps:
      - { name: c, type: tool, target: work, depends_on: [b] }
      - { name: a, type: tool, target: work }
      - { name: b, type: tool, target: work, parameters: { a: $(steps.a) } }
`);
    expect(actions.slice(0, -1).map(({ id, dependsOn: after }) => [id, after])).toEqual([
      ['both_gate', []],
      ['a', []],
      ['b', ['a']],
      ['c', ['b']],
      ['both', ['c', 'a', 'b']],
    ]);
    expect(actions.at(-2)?.['parameters']).toEqual({ c: '${c}', a: '${a}', b: '${b}' });
  });

  test('a skipped parallel group is collected after its gate, and only its referenced steps are written', async () => {
    const steps = [step({ name: 'x' }), step({ name: 'y' })];
    const text = 'mysteps.y or substeps.y';
    const { actions } = await write(
      definition([
        { name: 'both', type: 'parallel', condition: 'trigger.no', steps },
        { name: 'after', dependsOn: ['x'], parameters: { text } },
      ]),
      { endings: { both_gate: { status: 'skipped' } } },
    );
    expect(actions.slice(0, -1)).toEqual([
      {
        id: 'both_gate',
        ...COLLECTS,
        parameters: {},
        dependsOn: [],
        when: 'trigger.no',
        names: { trigger: { input: true } },
      },
      { id: 'after', ...WORK, parameters: { text }, dependsOn: ['x'] },
      { id: 'x', ...COLLECTS, parameters: {}, dependsOn: ['both_gate'], when: 'false' },
      { id: 'both', ...COLLECTS, parameters: {}, dependsOn: ['both_gate'] },
    ]);
  });

  test('a name in the outputs or in a compensation is a reference too', async () => {
    const { actions } = await write(
      `steps:
  - { name: choice, type: conditional, condition: "false", steps: [${works('x', 'y', 'z')}] }
  - { name: last, type: tool, target: work, compensate: [{ name: undo, type: tool, target: work, parameters: { of: $(steps.y) } }] }
outputs: { x: steps.x }
`,
      { endings: { choice_gate: { status: 'skipped' }, x: { status: 'skipped' } } },
    );
    expect(actions.map(({ id }) => id)).toEqual(['choice_gate', 'last', 'x', 'y', 'choice', OUTPUTS]);
    expect(actions.at(-1)).toMatchObject({ parameters: { x: null }, dependsOn: [] });
  });

  test('items that are not a list are an error, which can be skipped', async () => {
    const each = (onFailure: WorkflowStep['onFailure']): StepText => ({
      name: 'each',
      type: 'for_each',
      items: 'x',
      onFailure,
    });
    const endings = { each_items: { output: { items: 'costs $5' } } };
    const refused = (await write(definition([each('abort')]), { endings })).actions.find(({ id }) => id === 'each');
    expect(refused).toEqual({
      id: 'each',
      type: 'tool',
      name: '_refuse',
      parameters: { message: '"items" must be a list, found "costs $5"' },
      dependsOn: [],
    });
    const skipped = (await write(definition([each('continue')]), { endings })).actions;
    expect(skipped.map(({ id, onError }) => [id, onError])).toEqual([
      ['each_items', 'skip'],
      ['each', 'skip'],
      [OUTPUTS, undefined],
    ]);
    const nothing = (await write(definition([each('abort')]), { endings: { each_items: { output: 7 } } })).actions;
    expect(nothing.find(({ id }) => id === 'each')?.['parameters']).toEqual({
      message: '"items" must be a list, found null',
    });
  });
});

describe('[P16] [M6] limits', () => {
  const each = (inner: readonly StepText[]): StepText => ({
    name: 'each',
    type: 'for_each',
    items: '$(trigger.list)',
    steps: inner.map(step),
  });
  const items = (count: number): Record<string, Ending> => ({
    each_items: { output: { items: Array.from({ length: count }, (_, n) => n) } },
  });

  test('the maximum number of items is written: the items, their collector, their gate and the outputs; one more fails', async () => {
    const most = limits.actionsPerRun - 3;
    const fits = await write(definition([each([{ name: 'x' }])]), { endings: items(most) });
    expect(fits.error).toBeNull();
    expect(fits.actions).toHaveLength(limits.actionsPerRun);
    const { actions, error } = await write(definition([each([{ name: 'x' }])]), { endings: items(most + 1) });
    expect(actions.map(({ id }) => id)).toEqual(['each_items']);
    expect(error).toMatchObject({
      code: 'too_many_actions',
      message: `Step "each": ${most + 1} items with 1 steps each are at least ${most + 2} actions; a run may have ${limits.actionsPerRun}, and already has 1`,
    });
  });

  test('a group in the steps of an item counts with its gate and its collector', async () => {
    const inner = [{ name: 'g', type: 'parallel' as const }, { name: 'x' }];
    const { error } = await write(definition([each(inner)]), { endings: items(1_000) });
    expect(error).toMatchObject({
      message: expect.stringContaining('1000 items with 2 steps each are at least 3001 actions'),
    });
  });

  test('one action too many fails with its name', async () => {
    const steps = Array.from({ length: limits.actionsPerRun + 1 }, (_, n) => ({ name: `s${n}`, dependsOn: [] }));
    const { actions, error } = await write(definition(steps));
    expect(actions).toHaveLength(limits.actionsPerRun);
    expect(error).toMatchObject({
      code: 'too_many_actions',
      message: `A run may have ${limits.actionsPerRun} actions; "s${limits.actionsPerRun}" would exceed this`,
    });
  });

  test('actions of exactly the byte limit of a generation are declared', async () => {
    const padded = (chars: number): WorkflowDefinition =>
      definition([{ name: 'a', parameters: { pad: 'x'.repeat(chars) } }]);
    const { bytes } = await write(padded(0));
    const room = limits.generationBytes - bytes;
    expect((await write(padded(room))).error).toBeNull();
    expect((await write(padded(room + 1))).error).toMatchObject({
      code: 'too_large',
      message: expect.stringContaining(`"${OUTPUTS}" would exceed this`),
    });
  });

  test('actions past the byte limit of a generation fail at the step that exceeds it', async () => {
    const half = 'é'.repeat(limits.generationBytes / 4);
    const { actions, error } = await write(
      definition([
        { name: 'a', parameters: { half } },
        { name: 'b', parameters: { half } },
      ]),
    );
    expect(actions.map(({ id }) => id)).toEqual(['a']);
    expect(error).toMatchObject({
      code: 'too_large',
      message: `The steps of a run, with the items that they work on, may have ${limits.generationBytes} bytes in total; "b" would exceed this`,
    });
  });
});

describe('[M6] failures', () => {
  test('a failed step ends the workflow with its note, after its compensations are written', async () => {
    const undo = step({ name: 'undo', dependsOn: ['later'], parameters: { of: '$(steps.a)' } });
    const { actions, error } = await write(
      definition([
        { name: 'a', compensate: [undo] },
        { name: 'later', dependsOn: [] },
      ]),
      {
        endings: { a: { status: 'failed', note: 'it broke' } },
      },
    );
    expect(error).toMatchObject({ code: 'step_failed', message: 'Step "a" failed: it broke' });
    expect(actions.find(({ id }) => id === 'a_undo_undo')).toMatchObject({
      dependsOn: ['a'],
      parameters: { of: '${a}' },
    });
    expect(actions.map(({ id }) => id)).not.toContain(OUTPUTS);
  });

  test.each([
    ['failed', 'abort'],
    ['rejected', 'abort'],
    ['failed', 'retry'],
  ] as const)('a step that is %s without a note fails the text too, with on_failure: %s', async (status, onFailure) => {
    const { error } = await write(definition([{ name: 'a', onFailure }]), { endings: { a: { status } } });
    expect(error).toMatchObject({ code: 'step_failed', message: 'Step "a" failed' });
  });

  test.each(['continue', 'skip'] as const)('on_failure: %s does not fail the text', async (onFailure) => {
    const { error, actions } = await write(definition([{ name: 'a', onFailure }]), {
      endings: { a: { status: 'failed' } },
    });
    expect(error).toBeNull();
    expect(actions.at(-1)?.id).toBe(OUTPUTS);
  });

  test('fail_fast: false writes the other steps first, and fails with the first failure, without outputs', async () => {
    const { actions, error } = await write(
      definition([{ name: 'a' }, { name: 'b', dependsOn: [] }, { name: 'c', dependsOn: [] }], { failFast: false }),
      { endings: { a: { status: 'failed', note: 'first' }, c: { status: 'failed', note: 'second' } } },
    );
    expect(actions.map(({ id }) => id)).toEqual(['a', 'b', 'c']);
    expect(error).toMatchObject({ message: 'Step "a" failed: first' });
  });

  test.each(['failed', 'rejected'] as const)('a group with a %s gate has failed', async (status) => {
    const { error } = await write(definition([{ name: 'g', type: 'parallel', condition: 'trigger.x' }]), {
      endings: { g_gate: { status, note: 'no such name' }, g: { status: 'skipped' } },
    });
    expect(error).toMatchObject({ message: 'Step "g" failed: no such name' });
  });

  test.each(['skipped', 'cancelled'] as const)('a step that is %s has not failed', async (status) => {
    const { error } = await write(definition([{ name: 'a' }]), { endings: { a: { status } } });
    expect(error).toBeNull();
  });

  test('compensations run one after the other, and can refer to the step and to each other', async () => {
    const compensate = [
      step({ name: 'one', parameters: { of: '$(steps.a.n)' } }),
      step({ name: 'two', parameters: { one: '$(steps.one)' }, dependsOn: ['nothing'] }),
    ];
    const { actions } = await write(definition([{ name: 'a', compensate }]), { endings: { a: { status: 'failed' } } });
    expect(actions.map(({ id, parameters, dependsOn: after }) => [id, parameters, after])).toEqual([
      ['a', {}, []],
      ['a_undo_one', { of: '${a.n}' }, ['a']],
      ['a_undo_two', { one: '${a_undo_one}' }, ['a_undo_one']],
    ]);
  });

  test('two failed steps are both compensated before the text ends, and the first failure is reported', async () => {
    const undo = (name: string): WorkflowStep => step({ name });
    const { actions, error } = await write(
      definition([
        { name: 'a', compensate: [undo('x'), undo('y')] },
        { name: 'b', dependsOn: [], compensate: [undo('z')] },
      ]),
      { endings: { a: { status: 'failed', note: 'first' }, b: { status: 'failed', note: 'second' } } },
    );
    expect(actions.map(({ id }) => id).toSorted()).toEqual(['a', 'a_undo_x', 'a_undo_y', 'b', 'b_undo_z']);
    expect(error).toMatchObject({ message: 'Step "a" failed: first' });
  });
});
