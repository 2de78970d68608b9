/** Workflows: steps as actions, executed by the same engine (M6). What is declared is in workflow-actions.test.ts. */
import { describe, expect, test } from 'vitest';
import type { SessionEvent } from '../../../src/domain/event.ts';
import { eventSource } from '../../../src/http/session-app.ts';
import { batchStream } from '../../../src/http/sse.ts';
import { runText, sessionKit, textOf } from '../../support/session-kit.ts';
import { approve, atEveryAppend, finish, load, run, Shop } from './flows.ts';

/** A step that calls the tool `work`. */
const work = (name: string, parameters = '{}', more = ''): string =>
  `{ name: ${name}, type: tool, target: work, parameters: ${parameters}${more === '' ? '' : `, ${more}`} }`;
const FAILS = '{ fail: true }';

describe('[M6] steps', () => {
  test('run one after the other, use earlier results, and give outputs', async () => {
    const { result, outputs, started } = await run(
      `steps:
  - ${work('first', '{ give: { n: 2, rooms: [{ id: r1 }] } }', 'output_mapping: { room: "rooms[0].id" }')}
  - ${work('second', '{ n: $(steps.first.n), text: "n is $(steps.first.n), costs $5 and $first on $(date)", room: $(steps.first.room) }')}
  - ${work('third', '{ give: 1 }', `condition: "steps.first.rooms[0].id == 'r1'"`)}
outputs: { n: steps.second.n, text: steps.second.text, from: trigger.who, room: steps.second.room, third: steps.third }
`,
      { who: 'me' },
    );
    expect(result).toMatchObject({ status: 'completed', warnings: [] });
    expect(started).toEqual(['first', 'second', 'third']);
    const text = 'n is 2, costs $5 and $first on $(date)';
    expect(outputs).toEqual({ n: 2, text, from: 'me', room: 'r1', third: 1 });
    expect(JSON.parse(result.response)).toEqual(outputs);
  });

  test('[P12] a path that does not exist is named as it is written in the workflow', async () => {
    const { result } = await run(`steps:
  - ${work('bookings')}
  - ${work('report', '{ n: "$(steps.bookings.nothing[0])" }')}
outputs: { none: steps.bookings.none }
`);
    expect(result.status).toBe('completed');
    expect(result.warnings.map(({ message }) => message)).toEqual([
      '$(steps.bookings.nothing[0]): this path does not exist; the value is null',
      '$(steps.bookings.none): this path does not exist; the value is null',
    ]);
  });
});

describe('[M6] groups', () => {
  test('for_each runs its steps for every item with limited parallelism, and collects the results', async () => {
    const { outputs, most, result } = await run(`steps:
  - ${work('list', '{ give: [1, $x, { n: 3 }, 4, 5] }')}
  - name: each
    type: for_each
    items: $(steps.list)
    concurrency: 2
    steps:
      - ${work('one', '{ give: { item: $(item), at: $(index) } }')}
      - ${work('two', '{ give: $(steps.one.item) }')}
  - ${work('after', '{ all: $(steps.each.items) }')}
outputs: { all: steps.after.all }
`);
    expect(result.status).toBe('completed');
    expect(outputs).toEqual({ all: [1, '$x', { n: 3 }, 4, 5] });
    expect(most).toBe(2);
  });

  test('for_each limits parallel items by the number of steps, including steps without a slot', async () => {
    let atWork = 0;
    let most = 0;
    const shop = new Shop();
    const items = Array.from({ length: 20 }, (_, n) => n).join(', ');
    const flow = `steps: [{ name: each, type: for_each, items: [${items}], steps: [{ name: one, type: workflow, target: inner }] }]`;
    const kit = await shop.kit(load(flow), {
      children: {
        run: async () => {
          atWork += 1;
          most = Math.max(most, atWork);
          await new Promise<void>((resolve) => void shop.clock.schedule(10, resolve));
          atWork -= 1;
          const spent = { modelCalls: 0, tokens: 0, cost: 0, actions: 1, children: 1 };
          return { sessionId: 's', status: 'completed', output: null, error: null, spent };
        },
      },
    });
    await kit.session.workflow({});
    expect(await finish(kit)).toMatchObject({ status: 'completed', error: null });
    expect(most).toBe(5);
  });

  test('parallel steps overlap, and the next step waits for all of them', async () => {
    const { started, most, outputs } = await run(`steps:
  - name: both
    type: parallel
    concurrency: 2
    steps: [${[1, 2, 3].map((n) => work(`s${n}`, `{ give: ${n} }`)).join(', ')}]
  - ${work('after', '{ x: $(steps.s1), y: $(steps.both.s2) }')}
outputs: { after: steps.after }
`);
    expect(started).toEqual(['s1', 's2', 's3', 'after']);
    expect(most).toBe(2);
    expect(outputs).toEqual({ after: { x: 1, y: 2 } });
  });

  test.each([
    ['depends_on', work('a', '{}', 'depends_on: [b]')],
    ['a reference', work('a', '{ b: $(steps.deep.n) }')],
  ])('parallel steps with a limit of one run in an executable order (%s)', async (_, first) => {
    const group = `{ name: b, type: parallel, steps: [${work('deep', '{ n: 1 }')}] }`;
    const { status, started } = await run(
      `steps: [{ name: both, type: parallel, concurrency: 1, steps: [${first}, ${group}] }]`,
    );
    expect({ status, started }).toEqual({ status: 'completed', started: ['deep', 'a'] });
  });
});

describe('[M6] failures', () => {
  test('abort: nothing more starts, the compensation runs, and the workflow fails', async () => {
    const { result, started } = await run(
      `steps: [${work('a')}, ${work('b', FAILS, `compensate: [${work('undo', '{ what: $(steps.a) }')}]`)}, ${work('c')}]`,
    );
    expect(result).toMatchObject({
      status: 'failed',
      error: { code: 'step_failed', message: expect.stringContaining('"b" failed: broken') },
      outputs: null,
      // The error is the only report: no output was cut (P15).
      warnings: [],
      failed_actions: 1,
    });
    expect(started).toEqual(['a', 'b', 'b_undo_undo']);
  });

  test.each([
    [true, ['a', 'b']],
    [false, ['a', 'b', 'c', 'd']],
  ])('fail_fast %s: independent steps run first only if it is false', async (failFast, expected) => {
    const { error, started } = await run(`fail_fast: ${failFast}
steps: [${work('a', '{ fail: true, ms: 5 }')}, ${work('after')}, ${work('b', '{}', 'depends_on: []')}, ${work('c')}, ${work('d')}]
`);
    expect(error).toContain('Step "a" failed');
    expect(started).toEqual(expected);
  });

  test('steps that fail at the same time are all compensated to the end', async () => {
    const failing = (name: string, ...undo: string[]): string =>
      work(name, FAILS, `depends_on: [], compensate: [${undo.map((one) => work(one)).join(', ')}]`);
    const { status, started } = await run(
      `steps: [${failing('a', 'one')}, ${failing('b', 'one', 'two', 'three')}, ${work('never')}]`,
    );
    expect(status).toBe('failed');
    expect(started.toSorted()).toEqual(['a', 'a_undo_one', 'b', 'b_undo_one', 'b_undo_three', 'b_undo_two']);
  });

  test('items that are not a list fail the for_each, which is compensated', async () => {
    const each = `{ name: each, type: for_each, items: $(trigger.list), steps: [${work('one')}], compensate: [${work('undo')}] }`;
    const { result, started } = await run(`steps: [${each}, ${work('after')}]`, { list: 'a $b' });
    expect(result.status).toBe('failed');
    expect(result.actions.find(({ id }) => id === 'each')).toMatchObject({
      status: 'failed',
      error: { code: 'invalid_items', message: '"items" must be a list, found "a $b"' },
    });
    expect(started).toEqual(['each_undo_undo']);
  });

  test('collected names are data, whatever they are', async () => {
    const { outputs } = await run(`steps:
  - { name: both, type: parallel, steps: [${work('fail_times', '{ give: 5 }')}] }
  - ${work('delay_ms', '{ give: 900000 }')}
outputs: { fail_times: steps.both.fail_times, delay_ms: steps.delay_ms }
`);
    expect(outputs).toEqual({ fail_times: 5, delay_ms: 900_000 });
  });
});

test('[H1] [M6] messages to the session of a workflow are refused, and reveal nothing', async () => {
  const kit = await new Shop().kit(load(`steps: [${work('a')}]`));
  await kit.session.workflow({});
  await finish(kit);
  const message = kit.session.message({ content: 'hi', ifBusy: 'queue', tokens: false, idempotencyKey: null });
  await expect(message).rejects.toMatchObject({
    code: 'invalid_request',
    message: 'This session is a run of the workflow "flow" and accepts no messages',
  });
  expect(kit.requests).toEqual([]);
  expect(await textOf(kit.session.transcript())).toBe('');
});

describe('[M6] skipped steps', () => {
  const choice = (condition: string, more = ''): string => `steps:
  - ${work('first', '{ give: 3 }')}
  - name: choose
    type: conditional
    condition: ${condition}
    steps:
      - ${work('yes', '{ give: y }')}
      - { name: more, type: parallel, steps: [${work('deep', '{ give: d }')}] }
    else: [${work('no', '{ give: n }')}]
    ${more}
  - ${work('failed', FAILS, 'on_failure: skip, depends_on: [choose]')}
  - ${work('last', '{ yes: $(steps.yes), deep: $(steps.deep), no: $(steps.no) }', 'depends_on: [choose]')}
outputs: { yes: steps.yes, deep: steps.more.deep, no: steps.no, last: steps.last, failed: steps.failed }
`;

  test.each([
    ['steps.first == 3', { yes: 'y', deep: 'd', no: null }],
    ['steps.first == 4', { yes: null, deep: null, no: 'n' }],
  ])('steps of the other branch (%s) are null in references', async (condition, seen) => {
    const { result, outputs } = await run(choice(condition));
    expect(result).toMatchObject({ status: 'completed', warnings: [] });
    expect(outputs).toEqual({ ...seen, last: seen, failed: null });
  });

  test('a group whose condition cannot be evaluated fails, and the workflow with it', async () => {
    const { result, started } = await run(choice('steps.first.nothing.here > 1'));
    expect(result).toMatchObject({ status: 'failed', error: { code: 'step_failed' } });
    expect(JSON.stringify(result.error)).toContain('condition_error');
    expect(started).toEqual(['first']);
  });

  test('a group with on_failure: continue is null instead, like any other step', async () => {
    const { status, outputs } = await run(choice('steps.first.nothing.here > 1', 'on_failure: continue'));
    const nothing = { yes: null, deep: null, no: null };
    expect({ status, outputs }).toEqual({ status: 'completed', outputs: { ...nothing, last: nothing, failed: null } });
  });
});

describe('[J8] [M6] a workflow that waits for an approval', () => {
  const ASKING = `steps:
  - ${work('first', '{ give: [1, 2] }')}
  - name: each
    type: for_each
    items: $(steps.first)
    concurrency: 1
    steps: [{ name: sure, type: tool, target: sure, parameters: { give: $(item) } }]
  - { name: choose, type: conditional, condition: steps.first.size() == 2, steps: [${work('yes')}], else: [${work('no')}] }
  - ${work('last', '{ all: $(steps.each.items) }')}
outputs: { all: steps.last.all }
`;
  const DAY = 24 * 3_600_000;

  test('ends its stream, needs no host, counts no seconds, and continues after the decision', async () => {
    const shop = new Shop();
    const kit = await shop.kit(load(ASKING));
    await kit.session.workflow({});
    expect(await finish(kit)).toMatchObject({
      status: 'waiting',
      approvals: [{ approval_id: `apr_${'1'.repeat(32)}`, action_id: 'each_0_sure', name: 'sure' }],
    });
    await kit.settled();
    expect(kit.events.at(-1)).toMatchObject({ type: 'agent_waiting', data: { reason: 'approvals' } });
    expect(kit.events.find(({ type }) => type === 'approval_requested')?.data).toMatchObject({
      parameters: { give: 1 },
    });
    shop.clock.advance(6 * DAY);
    await approve(kit);
    expect(await finish(kit)).toMatchObject({ status: 'waiting' });
    await approve(kit);
    expect(await finish(kit)).toMatchObject({ status: 'completed', warnings: [], outputs: { all: [1, 2] } });
    expect(kit.events.filter(({ type }) => type === 'agent_waiting')).toHaveLength(2);
  });

  test('runs independent steps first', async () => {
    const shop = new Shop();
    const kit = await shop.kit(
      load(`steps:
  - { name: asked, type: tool, target: sure }
  - ${work('a', '{}', 'depends_on: []')}
  - ${work('b')}
  - { name: group, type: parallel, steps: [${work('c')}, ${work('d')}] }
`),
    );
    await kit.session.workflow({});
    await finish(kit);
    expect(shop.started).toEqual(['a', 'b', 'c', 'd']);
    expect(kit.events.filter(({ type }) => type === 'agent_waiting')).toHaveLength(1);
  });

  test.each([false, null])('fails at the step after a denial, and without a decision for a week (%s)', async (said) => {
    const shop = new Shop();
    const kit = await shop.kit(load(ASKING));
    await kit.session.workflow({});
    await finish(kit);
    if (said === null) {
      shop.clock.advance(7 * DAY);
      await kit.session.wake();
    } else await approve(kit, said);
    expect(await finish(kit)).toMatchObject({ status: 'failed', error: { code: 'step_failed' } });
  });

  test('[J2] ends the same if its host is lost at any append', async () => {
    await atEveryAppend(ASKING, ({ outputs, actions }) => {
      expect(outputs).toEqual({ all: [1, 2] });
      expect(new Set(actions.map(({ id }) => id)).size).toBe(actions.length);
    });
  });
});

test('[P16] [M6] a loop with more items than the action limit of a model’s generation runs to its end', async () => {
  const items = Array.from({ length: 300 }, (_, n) => n);
  const { result, outputs, most } = await run(
    `max_parallel_steps: 50
steps: [{ name: each, type: for_each, items: $(trigger.items), concurrency: 50, steps: [${work('one', '{ give: $(item) }')}] }]
outputs: { all: steps.each.items }
`,
    { items },
  );
  expect(result).toMatchObject({ status: 'completed', warnings: [] });
  expect(outputs).toEqual({ all: items });
  expect(most).toBe(50);
});

describe('[M6] actions that the runtime adds', () => {
  const GROUPED = `steps:
  - ${work('list', '{ give: [1, 2] }')}
  - { name: each, type: for_each, items: $(steps.list), steps: [${work('one', '{ n: $(item) }')}] }
  - ${work('last', '{ all: $(steps.each.items) }')}
outputs: { all: steps.last.all, none: steps.last.nothing }
`;

  test('are in no document or plan, and have no name in a stream, which has no gaps (J4); outputs are values', async () => {
    const shop = new Shop();
    const kit = await shop.kit(load(GROUPED));
    const source = eventSource(kit.session, shop.clock);
    const started = await kit.session.workflow({});
    const result = await finish(kit);
    expect(result.actions.map(({ id }) => id)).toEqual(['list', 'each_0_one', 'each_1_one', 'last']);
    expect(result.outputs).toEqual({ all: [{ n: 1 }, { n: 2 }], none: null });
    const plan = kit.events.find(({ type }) => type === 'plan_generated')?.data;
    expect(plan).toMatchObject({
      total: 4,
      // What depends on a group depends on its steps.
      edges: expect.arrayContaining([
        { from: 'each_0_one', to: 'last' },
        { from: 'each_1_one', to: 'last' },
      ]),
    });
    const stream = batchStream(source, { after: 0, runId: started.runId });
    const seen: SessionEvent[] = [];
    for await (const batch of stream) seen.push(...batch);
    const numbers = seen.flatMap(({ seq }) => (seq === null ? [] : [seq]));
    expect(numbers).toEqual(numbers.map((_, index) => index + 1));
    expect(JSON.stringify(plan)).not.toMatch(/each_gate|workflow_outputs/);
    expect(seen.at(-1)).toMatchObject({ type: 'agent_completed', data: { outputs: result.outputs } });
    const warned = seen.flatMap((event) => (event.type === 'warning' ? [event] : []));
    expect(warned.map(({ data }) => data.code)).toEqual(['missing_path']);
    expect(JSON.stringify([...seen, ...kit.events])).not.toContain('_collect');
  });

  test('are shown if they fail: a group whose items are no list', async () => {
    const { result } = await run(
      `steps: [{ name: each, type: for_each, items: $(trigger.list), on_failure: continue, steps: [${work('one')}] }, ${work('after')}]`,
      { list: 'no list' },
    );
    expect(result).toMatchObject({ status: 'completed', failed_actions: 1 });
    expect(result.actions.map(({ id, name, status }) => [id, name, status])).toEqual([
      ['each', null, 'failed'],
      ['after', 'work', 'completed'],
    ]);
  });

  test('a model that writes such a name sees its rejection', async () => {
    const kit = await sessionKit();
    const result = await runText(kit, '<action id="a">{"name":"_collect"}</action>');
    expect(result.actions).toMatchObject([{ id: 'a', name: '_collect', status: 'rejected' }]);
    expect(result).not.toHaveProperty('outputs');
    expect(kit.events.find(({ type }) => type === 'action_rejected')?.action_name).toBe('_collect');
  });
});
