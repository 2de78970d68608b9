/** Workflows: steps as protocol text, executed by the same engine (M6). */
import { describe, expect, test } from 'vitest';
import type { ActionOutcome } from '../../../src/domain/action.ts';
import type { SessionEvent } from '../../../src/domain/event.ts';
import { isHelperEvent } from '../../../src/domain/workflow-actions.ts';
import { eventSource } from '../../../src/http/session-app.ts';
import { batchStream } from '../../../src/http/sse.ts';
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import type { ResolvedWorkflow } from '../../../src/domain/manifests/resolved.ts';
import type { ToolDefinition } from '../../../src/domain/manifests/tool.ts';
import type { WorkflowStep } from '../../../src/domain/manifests/workflow.ts';
import { bundled } from '../../support/bundled.ts';
import type { RunResult } from '../../../src/engine/run/run-result.ts';
import type { ActionCall, ActionContext } from '../../../src/executors/executor.ts';
import { toolExecutor } from '../../../src/executors/tool.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { CrashingSql, openNodeSql } from '../../support/node-sql.ts';
import { runText, sessionKit, settle, resultOf, textOf } from '../../support/session-kit.ts';
import type { SessionKit } from '../../support/session-kit.ts';
import { definition, step } from './steps.ts';
import type { StepText } from './steps.ts';

const echoTool = bundled.tool('echo');
if (echoTool === null) throw new Error('the bundled catalogue has no echo');
const WORK: ToolDefinition = { ...echoTool, name: 'work', parameters: { type: 'object', additionalProperties: true } };

function workflow(steps: readonly StepText[], outputs: Record<string, string> = {}): ResolvedWorkflow {
  return {
    tools: new Map([['work', WORK]]),
    relics: new Map(),
    workflows: new Map(),
    agents: new Map(),
    knownNames: { tool: ['work'], agent: [], relic: [], workflow: [] },
    workflow: definition(steps, { outputs }),
  };
}

interface Done {
  readonly result: RunResult;
  readonly outputs: Json;
  /** Ids in the order of their starts, and the maximum number of concurrent steps. */
  readonly started: readonly string[];
  readonly most: number;
}

class Shop {
  readonly started: string[] = [];
  most = 0;
  #working = 0;
  readonly clock: VirtualClock;

  constructor(clock: VirtualClock) {
    this.clock = clock;
  }

  /** Returns its parameters after 10 ms; `fail: n` fails the first n attempts. */
  work = async (call: ActionCall, context: ActionContext): Promise<ActionOutcome> => {
    const { action, attempt, parameters } = call;
    if (action.name !== 'work') return await toolExecutor.execute(call, context);
    this.started.push(action.id);
    this.#working += 1;
    this.most = Math.max(this.most, this.#working);
    await new Promise<void>((resolve) => void this.clock.schedule(10, resolve));
    this.#working -= 1;
    if (attempt <= Number(parameters['fail'] ?? 0)) {
      return { ok: false, error: { code: 'broken', message: 'it broke', retryable: true } };
    }
    return { ok: true, output: 'give' in parameters ? (parameters['give'] ?? null) : parameters };
  };
}

async function finish(kit: SessionKit, clock: VirtualClock): Promise<RunResult> {
  for (let turn = 0; turn < 300; turn += 1) {
    await settle();
    const run = kit.session.runs()[0];
    if (run !== undefined && kit.session.hasEnded(run.runId)) return await resultOf(kit.session, run);
    if (clock.next !== null) clock.advance(clock.next - clock.now());
  }
  throw new Error(`the workflow does not end: ${JSON.stringify(kit.session.runs())}`);
}

/**
 * Runs a workflow repeatedly: once for every append at which its host can be lost, each time to its end on the next
 * host with the same disk.
 */
async function atEveryAppend(
  kitOf: (clock: VirtualClock, sql: CrashingSql) => Promise<SessionKit>,
  through: (kit: SessionKit, clock: VirtualClock) => Promise<RunResult>,
  check: (result: RunResult) => void,
): Promise<void> {
  for (let atAppend = 1; ; atAppend += 1) {
    const clock = new VirtualClock();
    const disk = openNodeSql();
    const first = new CrashingSql(disk, { atAppend, leaves: 'unsynced' });
    const begun = (async () => {
      const kit = await kitOf(clock, first);
      await kit.session.workflow({});
      return await through(kit, clock);
    })();
    const gone = (async () => {
      while (!first.crashed) await new Promise((resolve) => setImmediate(resolve));
    })();
    const whole = await Promise.race([begun.catch(() => null), gone.then(() => null)]);
    begun.catch(() => undefined);
    if (whole !== null) {
      expect(atAppend).toBeGreaterThan(20);
      return;
    }
    const kit = await kitOf(clock, new CrashingSql(disk, null));
    await kit.session.recover();
    if (kit.session.runs().length === 0) await kit.session.workflow({});
    const result = await through(kit, clock);
    expect(result, `crash at append ${atAppend}`).toMatchObject({ status: 'completed' });
    check(result);
  }
}

async function run(given: ResolvedWorkflow, inputs: JsonObject = {}): Promise<Done> {
  const clock = new VirtualClock();
  const shop = new Shop(clock);
  const kit = await sessionKit({ clock, workflow: given, executors: { tool: shop.work } });
  await kit.session.workflow(inputs);
  const result = await finish(kit, clock);
  const outputs = result.outputs ?? null;
  return { result, outputs, started: shop.started, most: shop.most };
}

describe('[M6] steps', () => {
  test('run one after the other, use earlier results, and give outputs', async () => {
    const { result, outputs, started } = await run(
      workflow(
        [
          { name: 'first', parameters: { give: { n: 2, list: ['a', 'b'] } } },
          {
            name: 'second',
            parameters: { n: '$(steps.first.n)', text: 'n is $(steps.first.n), costs $5 and $first on $(date)' },
          },
        ],
        { n: 'steps.second.n', text: 'steps.second.text', from: 'trigger.who' },
      ),
      { who: 'me' },
    );
    expect(result).toMatchObject({ status: 'completed' });
    expect(started).toEqual(['first', 'second']);
    expect(outputs).toEqual({ n: 2, text: 'n is 2, costs $5 and $first on $(date)', from: 'me' });
    expect(JSON.parse(result.response)).toEqual(outputs);
  });

  test('name items of lists as [0] or .0: in parameters, outputs, mappings, conditions and inputs', async () => {
    const rooms = { rooms: [{ id: 'r1', beds: [1, 2] }, { id: 'r2' }] };
    const { result, outputs } = await run(
      workflow(
        [
          { name: 'find', parameters: { give: rooms }, outputMapping: { last: 'rooms[1].id' } },
          {
            name: 'use',
            parameters: {
              give: {
                whole: '$(steps.find.rooms[0].beds[1])',
                text: 'room $(steps.find.rooms[0].id), $(steps.find.rooms.1.id) and $(trigger.names[1])',
                input: '$(trigger.names[0])',
                mapped: '$(steps.find.last)',
              },
            },
          },
          { name: 'plain', condition: "steps.find.rooms[0].id == 'r1'", parameters: { give: 1 } },
          { name: 'dollar', condition: "$(steps.find.rooms[0].id) == 'r1'", parameters: { give: 1 } },
          { name: 'quoted', condition: "'$(steps.find.rooms.0.id)' == 'r1'", parameters: { give: 1 } },
          { name: 'other', condition: "$(trigger.names[1]) == 'Ann'", parameters: { give: 1 } },
        ],
        {
          id: 'steps.find.rooms[1].id',
          use: 'steps.use',
          conditions: 'steps.plain',
          dollar: 'steps.dollar',
          quoted: 'steps.quoted',
          other: 'steps.other',
        },
      ),
      { names: ['Ann', 'Bo'] },
    );
    expect(result).toMatchObject({ status: 'completed', warnings: [] });
    expect(outputs).toEqual({
      id: 'r2',
      use: { whole: 2, text: 'room r1, r2 and Bo', input: 'Ann', mapped: 'r2' },
      conditions: 1,
      dollar: 1,
      quoted: 1,
      other: null,
    });
  });

  test('[P12] a path that does not exist is named as it is written in the workflow', async () => {
    const { result } = await run(
      workflow([{ name: 'bookings' }, { name: 'report', parameters: { n: '$(steps.bookings.nothing[0])' } }], {
        none: 'steps.bookings.none',
      }),
    );
    expect(result.status).toBe('completed');
    expect(result.warnings.map(({ message }) => message)).toEqual([
      '$(steps.bookings.nothing.0): this path does not exist; the value is null',
      '$(steps.bookings.none): this path does not exist; the value is null',
    ]);
  });

  test('run in parallel if they have depends_on', async () => {
    const { started, most } = await run(
      workflow([
        { name: 'a', dependsOn: [] },
        { name: 'b', dependsOn: [] },
        { name: 'c', dependsOn: ['a', 'b'], parameters: { a: '$(steps.a)' } },
      ]),
    );
    expect(started).toEqual(['a', 'b', 'c']);
    expect(most).toBe(2);
  });

  test('are skipped if their condition is false, and later ones see null', async () => {
    const { result, outputs } = await run(
      workflow(
        [
          { name: 'a', parameters: { give: { ok: false } } },
          { name: 'b', condition: '$(steps.a.ok)' },
          { name: 'c', condition: 'steps.a.ok == false && trigger.n > 3', parameters: { b: '$(steps.b)' } },
        ],
        { c: 'steps.c' },
      ),
      { n: 5 },
    );
    expect(result.actions.map(({ id, status }) => [id, status])).toEqual([
      ['a', 'completed'],
      ['b', 'skipped'],
      ['c', 'completed'],
    ]);
    expect(outputs).toEqual({ c: { b: null } });
  });

  test.each([
    ['steps.a.kind == "item" && steps.a.kind != "trigger"', true],
    ['steps.a.rows[0].item == 1', true],
    ['steps.a.rows.exists(item, item.price > 3)', true],
    ['trigger.list.size() == 2 && trigger.word.startsWith("ab")', true],
    ['has(trigger.word) && !has(trigger.nope)', true],
    ['has(steps.a.kind) && has(steps.a)', true],
    [`'$(steps.a.kind)' == "item" && $(trigger.list).size() > 1`, true],
    ['$trigger.word == "abc"', true],
    ['trigger.word in ["trigger", "abd"]', false],
  ])('with conditions: %s', async (condition, holds) => {
    const steps = [
      { name: 'a', parameters: { give: { kind: 'item', rows: [{ item: 1, price: 5 }] } } },
      { name: 'b', condition, parameters: { give: 'done' } },
    ];
    const { result, outputs } = await run(workflow(steps, { b: 'steps.b' }), { list: [1, 2], word: 'abc' });
    expect(result).toMatchObject({ status: 'completed' });
    expect(outputs).toEqual({ b: holds ? 'done' : null });
  });

  test('an output mapping names parts of a result', async () => {
    const { outputs } = await run(
      workflow([{ name: 'a', parameters: { give: { deep: { value: 7 } } }, outputMapping: { total: 'deep.value' } }], {
        total: 'steps.a.total',
      }),
    );
    expect(outputs).toEqual({ total: 7 });
  });
});

describe('[M6] groups', () => {
  test('for_each runs its steps for every item with limited parallelism, and collects the results', async () => {
    const { outputs, most, result } = await run(
      workflow(
        [
          { name: 'list', parameters: { give: [1, '$x', { n: 3 }, 4, 5] } },
          {
            name: 'each',
            type: 'for_each',
            items: '$(steps.list)',
            concurrency: 2,
            steps: [
              step({ name: 'one', parameters: { give: { item: '$(item)', at: '$(index)' } } }),
              step({ name: 'two', parameters: { give: '$(steps.one.item)' } }),
            ],
          },
          { name: 'after', parameters: { all: '$(steps.each.items)' } },
        ],
        { all: 'steps.after.all' },
      ),
    );
    expect(result.status).toBe('completed');
    expect(outputs).toEqual({ all: [1, '$x', { n: 3 }, 4, 5] });
    expect(most).toBe(2);
  });

  test('for_each over a value that is not a list fails by name', async () => {
    const { result } = await run(
      workflow([{ name: 'each', type: 'for_each', items: '$(trigger.list)', steps: [step({ name: 'one' })] }]),
      { list: 'no' },
    );
    expect(result).toMatchObject({
      status: 'failed',
      error: { code: 'step_failed', message: expect.stringContaining('"each"') },
    });
  });

  test.each([
    ['dependsOn', step({ name: 'a', dependsOn: ['b'] })],
    ['a reference', step({ name: 'a', parameters: { b: '$(steps.deep.n)' } })],
  ])('parallel steps with a limit of one run in an executable order (%s)', async (_, first) => {
    const group = step({
      name: 'b',
      type: 'parallel',
      steps: [step({ name: 'deep', parameters: { n: 1 } })],
    });
    const { result, started } = await run(
      workflow([{ name: 'both', type: 'parallel', concurrency: 1, steps: [first, group] }]),
    );
    expect(result.status).toBe('completed');
    expect(started).toEqual(['deep', 'a']);
  });

  test('for_each limits parallel items by the number of steps, including steps without a slot', async () => {
    let atWork = 0;
    let most = 0;
    const clock = new VirtualClock();
    const inner = step({ name: 'one', type: 'workflow', target: 'inner' });
    const items = Array.from({ length: 20 }, (_, n) => n);
    const given = workflow([{ name: 'each', type: 'for_each', items, steps: [inner] }]);
    const imports = { ...given.workflow.imports, workflows: ['inner'] };
    const kit = await sessionKit({
      clock,
      workflow: {
        ...given,
        workflow: { ...given.workflow, imports },
        workflows: new Map([['inner', workflow([{ name: 'x' }]).workflow]]),
      },
      children: {
        run: async () => {
          atWork += 1;
          most = Math.max(most, atWork);
          await new Promise<void>((resolve) => void clock.schedule(10, resolve));
          atWork -= 1;
          const spent = { modelCalls: 0, tokens: 0, cost: 0, actions: 1, children: 1 };
          return { sessionId: 's', status: 'completed', output: null, error: null, spent };
        },
      },
    });
    await kit.session.workflow({});
    const done = await finish(kit, clock);
    expect(done).toMatchObject({ status: 'completed', error: null });
    expect(most).toBe(5);
  });

  test('parallel steps overlap, and the next step waits for all of them', async () => {
    const { started, most, outputs } = await run(
      workflow(
        [
          {
            name: 'both',
            type: 'parallel',
            steps: [
              step({ name: 'x', parameters: { give: 1 } }),
              step({ name: 'y', parameters: { give: 2 } }),
              step({ name: 'z', parameters: { give: 3 } }),
            ],
            concurrency: 2,
          },
          { name: 'after', parameters: { x: '$(steps.x)', y: '$(steps.both.y)' } },
        ],
        { after: 'steps.after' },
      ),
    );
    expect(started).toEqual(['x', 'y', 'z', 'after']);
    expect(most).toBe(2);
    expect(outputs).toEqual({ after: { x: 1, y: 2 } });
  });

  test.each([
    [9, 'big', ['big']],
    [1, 'small', ['small']],
  ])('conditional runs one branch (%s)', async (n, taken, ran) => {
    const { started, result } = await run(
      workflow([
        {
          name: 'choose',
          type: 'conditional',
          condition: 'trigger.n > 5',
          steps: [step({ name: 'big' })],
          otherwise: [step({ name: 'small' })],
        },
        { name: 'after', parameters: {} },
      ]),
      { n },
    );
    expect(result.status).toBe('completed');
    expect(started).toEqual([...ran, 'after']);
    expect(started).toContain(taken);
  });
});

describe('[M6] failures', () => {
  test('abort: nothing more starts, the compensation runs, and the workflow fails', async () => {
    const { result, started } = await run(
      workflow([
        { name: 'a' },
        {
          name: 'b',
          parameters: { fail: 9, x: 1 },
          retry: { maxAttempts: 1, backoff: 'none', delayMs: 0, maxDelayMs: 0 },
          compensate: [step({ name: 'undo', parameters: { what: '$(steps.a)' } })],
        },
        { name: 'c' },
      ]),
    );
    expect(result).toMatchObject({
      status: 'failed',
      error: { code: 'step_failed', message: expect.stringContaining('"b" failed: broken') },
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
    const given = workflow([
      {
        name: 'a',
        parameters: { fail: 9 },
        retry: { maxAttempts: 1, backoff: 'none', delayMs: 0, maxDelayMs: 0 },
      },
      { name: 'after' },
      { name: 'b', dependsOn: [] },
      { name: 'c', dependsOn: ['b'] },
      { name: 'd' },
    ]);
    const { result, started } = await run({ ...given, workflow: { ...given.workflow, failFast } });
    expect(result).toMatchObject({ status: 'failed', error: { code: 'step_failed' } });
    expect(result.error).toMatchObject({ message: expect.stringContaining('Step "a" failed') as string });
    expect(started).toEqual(expect.arrayContaining(expected));
    expect(started).not.toContain('after');
    expect(started.includes('d')).toBe(!failFast);
  });

  test('steps that fail at the same time are all compensated', async () => {
    const failing = (name: string): StepText => ({
      name,
      dependsOn: [],
      parameters: { fail: 9 },
      retry: { maxAttempts: 1, backoff: 'none', delayMs: 0, maxDelayMs: 0 },
      compensate: [step({ name: 'one' }), step({ name: 'two' })],
    });
    const { result, started } = await run(workflow([failing('a'), failing('b'), { name: 'never' }]));
    expect(result).toMatchObject({ status: 'failed', error: { code: 'step_failed' } });
    const undone = ['a_undo_one', 'a_undo_two', 'b_undo_one', 'b_undo_two'];
    expect(started.toSorted()).toEqual(['a', ...undone.slice(0, 2), 'b', ...undone.slice(2)]);
  });

  test.each([
    ['abort', 'failed', ['undo']],
    ['continue', 'completed', []],
    ['skip', 'completed', []],
  ] as const)(
    'items that are not a list fail the for_each, and %s determines the consequence',
    async (onFailure, status, undone) => {
      const { result, started, outputs } = await run(
        workflow(
          [
            {
              name: 'each',
              type: 'for_each',
              items: '$(trigger.list)',
              steps: [step({ name: 'one' })],
              onFailure,
              compensate: [step({ name: 'undo' })],
            },
            { name: 'after', parameters: { each: '$(steps.each)' } },
          ],
          { after: 'steps.after' },
        ),
        { list: 'a $b' },
      );
      expect(result.status).toBe(status);
      expect(result.actions.find(({ id }) => id === 'each')).toMatchObject({
        status: 'failed',
        error: { code: 'invalid_items', message: '"items" must be a list, found "a $b"' },
      });
      expect(started.filter((id) => id.includes('undo'))).toEqual(undone.map((name) => `each_undo_${name}`));
      if (onFailure === 'continue') expect(outputs).toEqual({ after: { each: null } });
      if (onFailure === 'skip') expect(started).toEqual([]);
    },
  );

  test('collected names are data, whatever they are', async () => {
    const { result, outputs } = await run(
      workflow(
        [
          { name: 'both', type: 'parallel', steps: [step({ name: 'fail_times', parameters: { give: 5 } })] },
          { name: 'delay_ms', parameters: { give: 900_000 } },
        ],
        { fail_times: 'steps.both.fail_times', delay_ms: 'steps.delay_ms' },
      ),
    );
    expect(result).toMatchObject({ status: 'completed' });
    expect(outputs).toEqual({ fail_times: 5, delay_ms: 900_000 });
  });

  test('continue: later steps see null', async () => {
    const { result, outputs } = await run(
      workflow(
        [
          { name: 'a', onFailure: 'continue', parameters: { fail: 9 } },
          { name: 'b', parameters: { a: '$(steps.a)' } },
        ],
        { b: 'steps.b' },
      ),
    );
    expect(result.status).toBe('completed');
    expect(outputs).toEqual({ b: { a: null } });
  });

  test('skip: steps that wait for it are skipped, and the others run', async () => {
    const { result } = await run(
      workflow([
        { name: 'a', dependsOn: [], onFailure: 'skip', parameters: { fail: 9 } },
        { name: 'b', dependsOn: ['a'] },
        { name: 'c', dependsOn: [] },
      ]),
    );
    expect(result.actions.map(({ id, status }) => [id, status])).toEqual(
      expect.arrayContaining([
        ['a', 'failed'],
        ['b', 'skipped'],
        ['c', 'completed'],
      ]),
    );
  });

  test('retry: a step is retried', async () => {
    const { result, started } = await run(
      workflow([{ name: 'a', onFailure: 'retry', parameters: { fail: 2, give: 1 } }]),
    );
    expect(result.status).toBe('completed');
    expect(started).toEqual(['a', 'a', 'a']);
  });
});

test('[H1] [M6] messages to the session of a workflow are refused, and reveal nothing', async () => {
  const clock = new VirtualClock();
  const kit = await sessionKit({ clock, workflow: workflow([{ name: 'a' }]) });
  await kit.session.workflow({});
  await finish(kit, clock);
  const message = kit.session.message({ content: 'hi', ifBusy: 'queue', tokens: false, idempotencyKey: null });
  await expect(message).rejects.toMatchObject({
    code: 'invalid_request',
    message: 'This session is a run of the workflow "pipeline" and accepts no messages',
  });
  expect(kit.requests).toEqual([]);
  expect(await textOf(kit.session.transcript())).toBe('');
});

describe('[M6] skipped steps', () => {
  const choice = (condition: string): ResolvedWorkflow =>
    workflow(
      [
        { name: 'first', parameters: { give: 3 } },
        {
          name: 'choose',
          type: 'conditional',
          condition,
          steps: [
            step({ name: 'yes', parameters: { give: 'y' } }),
            step({ name: 'more', type: 'parallel', steps: [step({ name: 'deep', parameters: { give: 'd' } })] }),
          ],
          otherwise: [step({ name: 'no', parameters: { give: 'n' } })],
        },
        { name: 'last', parameters: { yes: '$(steps.yes)', deep: '$(steps.deep)', no: '$(steps.no)' } },
      ],
      { yes: 'steps.yes', deep: 'steps.more.deep', no: 'steps.no', last: 'steps.last' },
    );

  test.each([
    ['steps.first == 3', { yes: 'y', deep: 'd', no: null }],
    ['steps.first == 4', { yes: null, deep: null, no: 'n' }],
  ])('steps of the other branch (%s) are null in references', async (condition, seen) => {
    const { result, outputs } = await run(choice(condition));
    expect(result).toMatchObject({ status: 'completed', warnings: [] });
    expect(outputs).toEqual({ ...seen, last: seen });
  });

  test.each([
    ['steps.first == 3', 'then'],
    ['steps.first == 4', 'otherwise'],
  ])('a name in both branches refers to the step that runs (%s)', async (condition, seen) => {
    const same = (give: string): WorkflowStep[] => [step({ name: 'word', parameters: { give } })];
    const { result, outputs } = await run(
      workflow(
        [
          { name: 'first', parameters: { give: 3 } },
          { name: 'choose', type: 'conditional', condition, steps: same('then'), otherwise: same('otherwise') },
          { name: 'last', parameters: { give: '$(steps.word)' } },
        ],
        { word: 'steps.last' },
      ),
    );
    expect(result).toMatchObject({ status: 'completed', warnings: [] });
    expect(outputs).toEqual({ word: seen });
  });

  test('a group whose condition cannot be evaluated fails, and the workflow with it', async () => {
    const { result, started } = await run(choice('steps.first.nothing.here > 1'));
    expect(result).toMatchObject({ status: 'failed', error: { code: 'step_failed' } });
    expect(JSON.stringify(result.error)).toContain('condition_error');
    expect(started).toEqual(['first']);
  });

  test('a group with on_failure: continue is null instead, like any other step', async () => {
    const given = choice('steps.first.nothing.here > 1');
    const steps = given.workflow.steps.map((one) =>
      one.name === 'choose' ? { ...one, onFailure: 'continue' as const } : one,
    );
    const { result, outputs } = await run({ ...given, workflow: { ...given.workflow, steps } });
    expect(result).toMatchObject({ status: 'completed' });
    const nothing = { yes: null, deep: null, no: null };
    expect(outputs).toEqual({ ...nothing, last: nothing });
  });

  test('an output of a failed step that can be skipped is null; the others have values', async () => {
    const { result, outputs } = await run(
      workflow(
        [
          { name: 'a', parameters: { give: 1 } },
          { name: 'b', parameters: { fail: 9 }, onFailure: 'skip' },
          { name: 'c', parameters: { give: 2 } },
        ],
        { a: 'steps.a', b: 'steps.b', c: 'steps.c' },
      ),
    );
    expect(result).toMatchObject({ status: 'completed' });
    expect(outputs).toEqual({ a: 1, b: null, c: null });
  });
});

test('[J2] [M6] a workflow ends the same if its host is lost at any append', async () => {
  const given = workflow(
    [
      { name: 'list', parameters: { give: [1, 2, 3] } },
      {
        name: 'each',
        type: 'for_each',
        items: '$(steps.list)',
        concurrency: 2,
        steps: [step({ name: 'one', parameters: { give: '$(item)' } })],
      },
      {
        name: 'choose',
        type: 'conditional',
        condition: 'steps.list.size() == 3',
        steps: [step({ name: 'yes' })],
        otherwise: [step({ name: 'no' })],
      },
      { name: 'last', parameters: { all: '$(steps.each.items)' } },
    ],
    { all: 'steps.last.all' },
  );
  await atEveryAppend(
    (clock, sql) => sessionKit({ sql, clock, workflow: given, executors: { tool: new Shop(clock).work } }),
    finish,
    (result) => {
      expect(result.outputs).toEqual({ all: [1, 2, 3] });
      expect(new Set(result.actions.map(({ id }) => id)).size).toBe(result.actions.length);
    },
  );
});

describe('[J8] [M6] a workflow that waits for an approval', () => {
  const asking: ToolDefinition = { ...WORK, name: 'ask', approval: 'always' };
  const base = workflow(
    [
      { name: 'first', parameters: { give: [1, 2] } },
      {
        name: 'each',
        type: 'for_each',
        items: '$(steps.first)',
        concurrency: 1,
        steps: [step({ name: 'sure', target: 'ask', parameters: { give: '$(item)' } })],
      },
      { name: 'last', parameters: { all: '$(steps.each.items)' } },
    ],
    { all: 'steps.last.all' },
  );
  const given: ResolvedWorkflow = { ...base, tools: new Map([...base.tools, ['ask', asking]]) };
  const DAY = 24 * 3_600_000;

  function kitOf(clock: VirtualClock, sql: CrashingSql): Promise<SessionKit> {
    return sessionKit({ sql, clock, workflow: given, executors: { tool: new Shop(clock).work } });
  }

  /** Until it waits for an approval, or has ended. */
  async function rest(kit: SessionKit, clock: VirtualClock): Promise<RunResult> {
    for (let turn = 0; turn < 300; turn += 1) {
      await settle();
      const run = kit.session.runs()[0];
      const rests = run?.status === 'waiting' && !kit.session.busy;
      if (run !== undefined && (rests || kit.session.hasEnded(run.runId))) return await resultOf(kit.session, run);
      const { next } = clock;
      if (next !== null && next - clock.now() < DAY) clock.advance(next - clock.now());
    }
    throw new Error(`the workflow does not come to rest: ${JSON.stringify(kit.session.runs())}`);
  }

  const approve = (kit: SessionKit, approved: boolean): Promise<void> =>
    kit.session.resolveApproval(`apr_${'1'.repeat(32)}`, approved, null);

  test('ends its stream, needs no host, counts no seconds, and continues after the decision', async () => {
    const clock = new VirtualClock();
    const kit = await kitOf(clock, new CrashingSql(openNodeSql(), null));
    await kit.session.workflow({});
    expect(await rest(kit, clock)).toMatchObject({
      status: 'waiting',
      approvals: [{ approval_id: `apr_${'1'.repeat(32)}`, action_id: 'each_0_sure', name: 'ask' }],
    });
    await kit.settled();
    expect(kit.events.at(-1)).toMatchObject({ type: 'agent_waiting', data: { reason: 'approvals' } });
    const asked = kit.events.find(({ type }) => type === 'approval_requested')?.data;
    expect(asked).toMatchObject({ parameters: { give: 1 } });
    clock.advance(6 * DAY);
    await approve(kit, true);
    expect(await rest(kit, clock)).toMatchObject({ status: 'waiting' });
    await approve(kit, true);
    const result = await finish(kit, clock);
    expect(result).toMatchObject({ status: 'completed', warnings: [] });
    expect(result.outputs).toEqual({ all: [{ give: 1 }, { give: 2 }] });
    expect(kit.events.filter(({ type }) => type === 'agent_waiting')).toHaveLength(2);
  });

  test('runs independent steps first', async () => {
    const clock = new VirtualClock();
    const shop = new Shop(clock);
    const both: ResolvedWorkflow = {
      ...given,
      workflow: {
        ...given.workflow,
        steps: [
          step({ name: 'sure', target: 'ask' }),
          step({ name: 'a', dependsOn: [] }),
          step({ name: 'b', dependsOn: ['a'] }),
          step({
            name: 'group',
            type: 'parallel',
            dependsOn: ['b'],
            steps: [step({ name: 'c' }), step({ name: 'd' })],
          }),
        ],
      },
    };
    const kit = await sessionKit({ clock, workflow: both, executors: { tool: shop.work } });
    await kit.session.workflow({});
    await rest(kit, clock);
    expect(shop.started).toEqual(['a', 'b', 'c', 'd']);
    expect(kit.events.filter(({ type }) => type === 'agent_waiting')).toHaveLength(1);
  });

  test('fails at the step after a denial, and without a decision for a week', async () => {
    for (const answer of [false, null]) {
      const clock = new VirtualClock();
      const kit = await kitOf(clock, new CrashingSql(openNodeSql(), null));
      await kit.session.workflow({});
      await rest(kit, clock);
      if (answer === null) {
        clock.advance(7 * DAY);
        await kit.session.wake();
      } else approve(kit, answer);
      expect(await finish(kit, clock)).toMatchObject({ status: 'failed', error: { code: 'step_failed' } });
    }
  });

  test('can be cancelled', async () => {
    const clock = new VirtualClock();
    const kit = await kitOf(clock, new CrashingSql(openNodeSql(), null));
    await kit.session.workflow({});
    await rest(kit, clock);
    await kit.session.cancel('enough');
    expect(await finish(kit, clock)).toMatchObject({ status: 'cancelled' });
  });

  test('[J2] survives the loss of its host at any append', async () => {
    const through = async (kit: SessionKit, clock: VirtualClock): Promise<RunResult> => {
      for (;;) {
        const result = await rest(kit, clock);
        if (result.status !== 'waiting') return result;
        await approve(kit, true);
      }
    };
    await atEveryAppend(kitOf, through, (result) => {
      expect(result.outputs).toEqual({ all: [{ give: 1 }, { give: 2 }] });
    });
  });
});

describe('[P16] [M6] large loops', () => {
  const loop = (): ResolvedWorkflow =>
    workflow(
      [
        {
          name: 'each',
          type: 'for_each',
          items: '$(trigger.items)',
          concurrency: 50,
          steps: [step({ name: 'one', parameters: { give: '$(item)' } })],
        },
      ],
      { all: 'steps.each.items' },
    );

  test('with more items than the action limit of a model’s generation run to their end', async () => {
    const items = Array.from({ length: 300 }, (_, n) => n);
    const base = loop();
    const given = { ...base, workflow: { ...base.workflow, maxParallelSteps: 50 } };
    const { result, outputs, most } = await run(given, { items });
    expect(result).toMatchObject({ status: 'completed', warnings: [] });
    expect(outputs).toEqual({ all: items });
    expect(most).toBe(50);
  });

  test('with more items than the action limit of a run fail by name, before any step runs', async () => {
    const { result, started } = await run(loop(), { items: Array.from({ length: 2_000 }, (_, n) => n) });
    expect(result).toMatchObject({ status: 'failed', error: { code: 'too_many_actions' } });
    expect(JSON.stringify(result.error)).toMatch(
      /Step \\"each\\": 2000 items with 1 steps each are at least 2001 actions/,
    );
    expect(started).toEqual([]);
  });

  test('with more text than the byte limit of a generation fail by name', async () => {
    const { result } = await run(loop(), { items: Array.from({ length: 50 }, () => 'x'.repeat(100_000)) });
    expect(result).toMatchObject({ status: 'failed', error: { code: 'too_large' } });
  });
});

describe('[M6] actions that the runtime adds', () => {
  const grouped = workflow(
    [
      { name: 'list', parameters: { give: [1, 2] } },
      {
        name: 'each',
        type: 'for_each',
        items: '$(steps.list)',
        steps: [step({ name: 'one', parameters: { n: '$(item)' } })],
      },
      { name: 'last', parameters: { all: '$(steps.each.items)' } },
    ],
    { all: 'steps.last.all', none: 'steps.last.nothing' },
  );

  test('are in no document or plan, and have no name in a stream, which has no gaps (J4); outputs are values', async () => {
    const clock = new VirtualClock();
    const kit = await sessionKit({ clock, workflow: grouped, executors: { tool: new Shop(clock).work } });
    const source = eventSource(kit.session, clock);
    const started = await kit.session.workflow({});
    const result = await finish(kit, clock);
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
    expect(JSON.stringify(seen)).not.toContain('"action_name":"_collect"');
    const numbers = seen.flatMap(({ seq }) => (seq === null ? [] : [seq]));
    expect(numbers).toEqual(numbers.map((_, index) => index + 1));
    expect(JSON.stringify(plan)).not.toMatch(/each_gate|workflow_outputs/);
    expect(seen.at(-1)).toMatchObject({ type: 'agent_completed', data: { outputs: result.outputs } });
    const warned = seen.flatMap((event) => (event.type === 'warning' ? [event] : []));
    expect(warned.map(({ data }) => data.code)).toEqual(['missing_path']);
    expect(JSON.stringify(warned)).not.toContain('_collect');
    // The journal has their names, because a run continues from it.
    expect(kit.events.some(({ action_name: name }) => name === '_collect')).toBe(true);
  });

  test('are shown if they fail: a group whose items are no list', async () => {
    const { result } = await run(
      workflow([
        { name: 'each', type: 'for_each', items: 'no list', onFailure: 'continue', steps: [step({ name: 'one' })] },
        { name: 'after' },
      ]),
    );
    expect(result).toMatchObject({ status: 'completed', failed_actions: 1 });
    expect(result.actions.map(({ id, name, status }) => [id, name, status])).toEqual([
      ['each', null, 'failed'],
      ['after', 'work', 'completed'],
    ]);
  });

  test('outputs are null until the workflow has them, also if it fails', async () => {
    const { result } = await run(workflow([{ name: 'a', parameters: { fail: 9 } }], { a: 'steps.a' }));
    expect(result).toMatchObject({ status: 'failed', outputs: null });
  });

  test('a model that writes such a name sees its rejection', async () => {
    const text = '<action id="a">{"name":"_collect"}</action>';
    const kit = await sessionKit();
    const result = await runText(kit, text);
    expect(result.actions).toMatchObject([{ id: 'a', name: '_collect', status: 'rejected' }]);
    expect(result).not.toHaveProperty('outputs');
    const rejected = kit.events.find(({ type }) => type === 'action_rejected');
    expect(rejected === undefined || isHelperEvent(rejected)).toBe(false);
  });
});
