/** A session whose host is lost at any moment continues from its journal (J1-J3, J9, S7, S10). */
import { describe, expect, test } from 'vitest';
import type { ActionOutcome } from '../../../src/domain/action.ts';
// Loaded before a test's clock advances: the engine imports it when a feed is added.
import '../../../src/catalog/schema/feed.ts';
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import type { FeedDefinition } from '../../../src/domain/manifests/feed.ts';
import type { SessionEvent } from '../../../src/domain/event.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { ModelDelta, ModelRequest } from '../../../src/domain/ports/model.ts';
import { Journal } from '../../../src/journal/journal.ts';
import type { RunResult } from '../../../src/view/result.ts';
import type { ActionCall, ActionContext } from '../../../src/executors/executor.ts';
import { feedOf } from '../../support/definitions.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { CrashingSql, openNodeSql } from '../../support/node-sql.ts';
import type { CrashPoint } from '../../support/node-sql.ts';
import { sessionKit, settle, resultOf } from '../../support/session-kit.ts';
import type { KitOptions, SessionKit } from '../../support/session-kit.ts';
import { eventsOf, membersOf } from '../../support/events.ts';
import { splitRows } from '../../support/event-sql.ts';

/** State that survives the hosts: the disk, the time, the effects of actions, and the events sent to readers. */
class World {
  readonly disk = openNodeSql();
  readonly clock = new VirtualClock();
  /** `runtime key/attempt` of every execution, in order. */
  readonly executed: string[] = [];
  readonly #ends = new Map<string, ActionOutcome>();
  readonly #remembers: boolean;
  /** The journaled events that the hosts' readers received. */
  readonly sent: SessionEvent[] = [];

  constructor(remembers: boolean) {
    this.#remembers = remembers;
  }

  /** Takes `latency_ms` (or the default for the id) and returns the parameters; fails as requested. */
  execute = async (call: ActionCall, { signal }: ActionContext): Promise<ActionOutcome> => {
    const job = `${call.runtimeKey}/${call.attempt}`;
    this.executed.push(job);
    const { value = null, ms = 10, fail_times: failTimes = 0 } = call.parameters;
    const end: ActionOutcome =
      call.attempt <= Number(failTimes)
        ? { ok: false, error: { code: 'flaky', message: 'try again', retryable: true } }
        : { ok: true, output: value };
    this.#ends.set(job, end);
    return await this.#after(Number(ms), end, signal);
  };

  /** Like a runner that knows its jobs. */
  recover = async (call: ActionCall, { signal }: ActionContext): Promise<ActionOutcome | null> => {
    const end = this.#ends.get(`${call.runtimeKey}/${call.attempt}`);
    return end === undefined || !this.#remembers ? null : await this.#after(5, end, signal);
  };

  #after(ms: number, end: ActionOutcome, signal: AbortSignal): Promise<ActionOutcome> {
    return new Promise((resolve) => {
      const cancel = this.clock.schedule(ms, () => resolve(end));
      signal.addEventListener('abort', () => {
        cancel();
        resolve({ ok: false, error: { code: 'aborted', message: 'aborted', retryable: false } });
      });
    });
  }
}

/** Its timers wait for as long as they would without the change. */
class SetBackClock extends VirtualClock {
  backMs = 0;

  override now(): number {
    return super.now() - this.backMs;
  }
}

interface Host {
  readonly kit: SessionKit;
  readonly sql: CrashingSql;
}

async function host(world: World, crash: CrashPoint | null, options: KitOptions = {}): Promise<Host> {
  const sql = new CrashingSql(world.disk, crash);
  const kit = await sessionKit({
    sql,
    clock: world.clock,
    executors: { tool: world.execute, python: world.execute },
    recover: { python: world.recover },
    ...options,
  });
  kit.session.listen((batch) => world.sent.push(...(batch ?? []).filter(({ seq }) => seq !== null)));
  return { kit, sql };
}

const allEnded = ({ kit }: Host): boolean =>
  kit.session.runs().every(({ run }) => kit.session.hasEnded(`run_${'a'.repeat(32)}_${run}`));

/** Advances the clock until every run has ended or the host is lost. */
async function live(world: World, one: Host): Promise<void> {
  for (let turn = 0; turn < 500; turn += 1) {
    await settle();
    if (one.sql.crashed || allEnded(one)) return;
    const { next } = world.clock;
    if (next === null) throw new Error('nothing will ever happen any more');
    world.clock.advance(next - world.clock.now());
  }
  throw new Error('the runs do not end');
}

/** One workload: posted text, or messages to a model. */
interface Work {
  readonly name: string;
  readonly text?: string;
  readonly model?: (request: ModelRequest) => readonly string[];
  readonly agent?: KitOptions['agent'];
}

async function begin(one: Host, work: Work): Promise<void> {
  const { session } = one.kit;
  if (work.text === undefined) {
    await session.message({ content: 'go', ifBusy: 'queue', tokens: false, idempotencyKey: 'once' });
  } else {
    const { text } = work;
    const chunks = async function* (): AsyncGenerator<string> {
      for (let at = 0; at < text.length; at += 40) {
        yield text.slice(at, at + 40);
        await Promise.resolve();
      }
    };
    await session.execute(chunks(), text);
  }
}

function optionsOf(work: Work): KitOptions {
  const { model } = work;
  return {
    ...(work.agent === undefined ? {} : { agent: work.agent }),
    ...(model === undefined
      ? {}
      : {
          async *stream(request: ModelRequest): AsyncGenerator<ModelDelta> {
            for (const text of model(request)) {
              yield { type: 'text', text };
              await Promise.resolve();
            }
            yield { type: 'finish', reason: 'stop' };
          },
        }),
  };
}

/** Runs the work through hosts that crash at the given points, and a last one that does not. */
async function through(
  work: Work,
  crashes: readonly CrashPoint[],
  remembers: boolean,
): Promise<{ world: World; last: Host; appends: number }> {
  const world = new World(remembers);
  let appends = 0;
  for (const [life, crash] of [...crashes, null].entries()) {
    const one = await host(world, crash, optionsOf(work));
    const begun = async (): Promise<void> => {
      await one.kit.session.recover();
      // A client without an answer repeats its request, because it cannot know whether it was accepted (J7).
      if (one.kit.session.runs().length === 0) await begin(one, work);
    };
    const [outcome] = await Promise.allSettled([Promise.race([begun(), gone(one)])]);
    if (outcome.status === 'rejected' && !one.sql.crashed) throw outcome.reason;
    if (!one.sql.crashed) await live(world, one);
    appends = one.sql.appends;
    if (crash === null) {
      expect(one.kit.faults, `life ${life}`).toEqual([]);
      return { world, last: one, appends };
    }
    one.sql.kill();
    await settle();
  }
  throw new Error('unreachable');
}

async function gone({ sql }: Host): Promise<void> {
  while (!sql.crashed) await new Promise((resolve) => setImmediate(resolve));
}

async function lastResult({ kit }: Host): Promise<RunResult> {
  const run = kit.session.runs().at(-1);
  if (run === undefined) throw new Error('there is no run');
  return await resultOf(kit.session, run);
}

const echoFeed = (id: string, params: JsonObject): FeedDefinition =>
  feedOf(id, { source: { type: 'tool', name: 'echo', action: null, params } });

const ENDS = new Set(['action_completed', 'action_failed', 'action_skipped', 'action_cancelled', 'action_rejected']);
const ACTION = (
  id: string,
  fields: Record<string, Json> = {},
  parameters: Record<string, Json> = {},
  type = 'tool',
): string =>
  `<action type="${type}" mode="async" id="${id}">${JSON.stringify({
    ...(type === 'tool' ? { name: 'echo' } : {}),
    parameters: { value: `value of ${id}`, ...(type === 'tool' ? {} : { code: 'x' }), ...parameters },
    ...fields,
  })}</action>`;

const WORK: readonly Work[] = [
  {
    name: 'chain of unsafe actions',
    text: `${ACTION('a', {}, {}, 'python')}${ACTION('b', { depends_on: ['a'] }, {}, 'python')}${ACTION('c', { depends_on: ['b'] }, {}, 'python')}<response final="true">$c</response>`,
  },
  {
    name: 'fan-out with retries, two at a time',
    text: `${[1, 2, 3, 4].map((n) => ACTION(`f${n}`, { retry: { max_attempts: 3, delay: 1, backoff: 'exponential' } }, { fail_times: n % 3, ms: 10 * n })).join('')}<response final="true">$f1 $f4</response>`,
    agent: (agent) => ({ ...agent, loop: { ...agent.loop, maxParallelActions: 2 } }),
  },
  {
    name: 'partial responses, a condition, a barrier and one that nobody waits for',
    text: `<thought>many of them</thought><response final="false">first $a then</response>${ACTION('a', { output_key: 'top' })}<response final="false">have $a now</response>${ACTION('no', { when: '$a == "x"' })}${ACTION('yes', { when: '$a != "x"' })}<action type="tool" mode="sync" id="s">{"name":"echo","parameters":{"value":1}}</action>${ACTION('after')}<action type="tool" mode="fire_and_forget" id="bg">{"name":"echo","parameters":{"value":2,"ms":500}}</action><response final="true">$yes $after $top</response>`,
  },
  {
    name: '[P12] posted text with feeds: one of the manifest, one that fails, one that the text adds',
    text: `${ACTION('a', {}, { value: 'rate $rate', ms: 30 })}${ACTION('b', { depends_on: ['a'] }, { value: '$rate' })}<action type="internal" id="add">{"name":"add_context_feed","parameters":{"id":"mine","source":{"type":"tool","name":"echo","params":{"value":"my value"}}}}</action>${ACTION('c', {}, { value: '$mine and $down' })}${ACTION('d', { when: 'rate == 7' }, { value: ['$rate', '$mine'] })}<response final="true">$a, $b, $c, $mine, $rate, $down</response>`,
    agent: (agent) => ({
      ...agent,
      feeds: [echoFeed('rate', { value: 7, ms: 20 }), echoFeed('down', { fail_times: 9 })],
    }),
  },
  {
    name: 'two iterations with a model',
    model: ({ messages }) =>
      JSON.stringify(messages).includes('action_result')
        ? ['<response final="true">', 'the answer is ', '42</response>']
        : ['<thought>let me ', 'see</thought>', ACTION('x', {}, { ms: 40 }), ' <thought>meanwhile</thought>'],
  },
  {
    name: 'one generation that answers with a reference',
    model: () => [
      ACTION('x', { output_key: 'out' }, { ms: 40 }),
      '<response final="true">it is ',
      '$out indeed</response>',
    ],
  },
  {
    name: '[P10] an answer without values, which the model is shown once',
    model: ({ messages }) =>
      JSON.stringify(messages).includes('was not final')
        ? ['<response final="true">it is $x', '</response>']
        : [ACTION('x', {}, { ms: 40 }), '<response final="true">it is ', '$x.count</response>'],
  },
];

/** Everything that must be the same for any crash: not the number of model calls, nor their durations. */
function essence(result: RunResult): unknown {
  const byId = new Map(result.actions.map(({ id, status, output }) => [id, { status, output }]));
  return { status: result.status, response: result.response, actions: Object.fromEntries([...byId].sort()) };
}

function checkJournal({ world, last }: { world: World; last: Host }): void {
  const events: SessionEvent[] = [];
  for (let after = 0; ;) {
    const page = last.kit.session.events(after);
    if (page.length === 0) break;
    events.push(...page);
    after = page.at(-1)?.seq ?? 0;
  }
  expect(
    events.map(({ seq }) => seq),
    'ids without a gap',
  ).toEqual(events.map((_, index) => index + 1));
  // Readers have received exactly the events of the journal: no event was lost.
  expect(world.sent.length).toBeGreaterThan(5);
  for (const event of world.sent) expect(event).toEqual(events[(event.seq ?? 0) - 1]);
  const queued = events.filter(({ type }) => type === 'action_queued');
  for (const { iteration, action_id: id } of queued) {
    const ends = events.filter(
      (event) => event.action_id === id && event.iteration === iteration && ENDS.has(event.type),
    );
    expect(
      ends.map(({ type }) => type),
      `ends of ${id ?? ''}`,
    ).toHaveLength(1);
  }
  for (const type of ['thought', 'text', 'response'] as const) {
    const started = events.filter((event) => event.type === `${type}_started`).map(({ seq }) => seq);
    const completed = eventsOf(events, `${type}_completed`).map(({ data }) => data.segment);
    expect(completed.toSorted(), `blocks of ${type}`).toEqual(started.toSorted());
  }
  expect(last.kit.session.runs().map(({ status }) => status)).not.toContain('running');
  expect(last.kit.session.busy).toBe(false);
}

const atMostOnce = (executed: readonly string[]): void => expect(new Set(executed).size).toBe(executed.length);

describe.each(WORK)('[J2] [J3] [S10] $name', (work) => {
  test.each(['torn', 'unsynced'] as const)('ends the same if the host is lost at any append (%s)', async (leaves) => {
    const whole = await through(work, [], true);
    checkJournal(whole);
    const expected = essence(await lastResult(whole.last));
    expect(expected).toMatchObject({ status: 'completed' });
    for (let atAppend = 1; atAppend <= whole.appends; atAppend += 1) {
      const survived = await through(work, [{ atAppend, leaves }], true);
      checkJournal(survived);
      expect(essence(await lastResult(survived.last)), `crash at append ${atAppend}`).toEqual(expected);
      if (work.name.includes('unsafe')) atMostOnce(survived.world.executed);
    }
  });

  test('ends the same if several hosts are lost in a row', async () => {
    const expected = essence(await lastResult((await through(work, [], true)).last));
    for (const [first, second, third] of [
      [3, 2, 4],
      [5, 5, 5],
      [8, 1, 9],
      [12, 3, 2],
    ] as const) {
      const crashes = [first, second, third].map((atAppend): CrashPoint => ({ atAppend, leaves: 'unsynced' }));
      const survived = await through(work, crashes, true);
      checkJournal(survived);
      expect(essence(await lastResult(survived.last)), `crashes at ${first}, ${second}, ${third}`).toEqual(expected);
      if (work.name.includes('unsafe')) atMostOnce(survived.world.executed);
    }
  });
});

/** A host that is lost between two turns, and the next one on the same disk. */
async function hostsOf(
  options: KitOptions = {},
  remembers = false,
): Promise<{ world: World; first: Host; next: (more?: KitOptions) => Promise<Host> }> {
  const world = new World(remembers);
  const first = await host(world, null, options);
  let current = first;
  return {
    world,
    first,
    next: async (more = {}) => {
      await settle();
      current.sql.kill();
      current = await host(world, null, { ...options, ...more });
      await current.kit.session.recover();
      await settle();
      return current;
    },
  };
}

/** The text of the first run that is stored without an event. */
const savedText = ({ disk }: World): string =>
  new Journal(disk).runs
    .looseInputs(1)
    .flatMap(({ inputs }) => (inputs as JsonObject[]).map(({ text }) => text ?? ''))
    .join('');

const send = async ({ kit }: Host, content: string): Promise<void> =>
  void (await kit.session.message({ content, ifBusy: 'queue', tokens: false, idempotencyKey: null }));

/** A model with one text per generation; null: the stream stays silent after its previous parts. */
function speaking(
  ...generations: readonly (readonly (string | null)[])[]
): KitOptions & { readonly asked: ModelRequest[] } {
  const asked: ModelRequest[] = [];
  return {
    asked,
    async *stream(request) {
      const texts = generations[asked.length] ?? ['<response final="true">out of script</response>'];
      asked.push(request);
      for (const text of texts) {
        if (text === null) await new Promise(() => undefined);
        else yield { type: 'text', text };
      }
      yield { type: 'finish', reason: 'stop' };
    },
  };
}

describe('[J2] a model run continues with another generation', () => {
  test('the outcome of an unsafe action is unknown, and the model is informed', async () => {
    const model = speaking([ACTION('risky', {}, { ms: 1_000 }, 'python')], ['<response final="true">I see</response>']);
    const { world, first, next } = await hostsOf(model);
    await send(first, 'do it');
    const second = await next();
    expect(await lastResult(second)).toMatchObject({ status: 'completed', response: 'I see' });
    expect((await lastResult(second)).actions).toMatchObject([
      { status: 'failed', error: { code: 'outcome_unknown' } },
    ]);
    expect(JSON.stringify(model.asked[1]?.messages)).toContain('outcome_unknown');
    expect(world.executed).toHaveLength(1);
  });

  test('[S12] the expenses of children before the crash count after it', async () => {
    const helper = (id: string): string =>
      `<action type="agent" id="${id}" mode="async">{"name": "helper", "parameters": {"message": "hi"}}</action>`;
    const spent = { modelCalls: 7, tokens: 0, cost: 0, actions: 0, children: 1 };
    let children = 0;
    const { world, first, next } = await hostsOf({
      ...speaking(
        [helper('a'), ACTION('slow', { a: '$a' }, { ms: 1_000 })],
        [helper('b')],
        ['<response final="true">done</response>'],
      ),
      agent: (agent) => ({
        ...agent,
        imports: { ...agent.imports, agents: ['helper'] },
        budgets: { ...agent.budgets, modelCalls: 10 },
      }),
      executors: {
        tool: async (call, context) => await world.execute(call, context),
        agent: () => {
          children += 1;
          return Promise.resolve({ ok: true, output: 'hello', spent });
        },
      },
    });
    await send(first, 'go');
    await settle();
    expect(children).toBe(1);
    const second = await next();
    await live(world, second);
    // 10 calls: 7 of the child, 2 of generations, and one is reserved for the answer.
    expect((await lastResult(second)).actions).toMatchObject([
      { id: 'a', status: 'completed' },
      { id: 'slow', status: 'completed' },
      { id: 'b', status: 'failed', error: { code: 'budget_exceeded' } },
    ]);
    expect(children).toBe(1);
  });

  test('[J4] [J6] the stored part of an interrupted block is kept and marked as cut; it is not the answer', async () => {
    const long = 'a long answer. '.repeat(200);
    const model = speaking(
      ['<thought>hm</thought><response final="true">', long, 'and the rest', null],
      ['<response final="true">shorter</response>'],
    );
    const { world, first, next } = await hostsOf(model);
    await send(first, 'tell me');
    await settle();
    const second = await next();
    await live(world, second);
    const result = await lastResult(second);
    expect(result).toMatchObject({ status: 'completed', response: 'shorter' });
    expect(result.responses[0]?.content).toMatch(/^a long answer\. /);
    const cut = world.sent.filter((event) => membersOf(event)['cut'] === true);
    expect(cut.map(({ type }) => type)).toEqual(['response_completed']);
    expect(eventsOf(world.sent, 'warning').filter(({ data }) => data.code === 'run_recovered')).toHaveLength(1);
    expect(JSON.stringify(model.asked[1]?.messages)).toContain('cut off');
  });

  test('[P11] [P15] a generation that a crash interrupts at any character is not the answer, and shows no half tag', async () => {
    const written = '<thought>t</thought><action id="a">{"name":"echo"}</action>';
    for (let at = 1; at < written.length; at += 1) {
      const model = speaking([written.slice(0, at), null], ['<response final="true">done</response>']);
      const { world, first, next } = await hostsOf(model);
      await send(first, 'tell me');
      await settle();
      const second = await next();
      await live(world, second);
      expect(await lastResult(second), written.slice(0, at)).toMatchObject({ status: 'completed', response: 'done' });
      expect(eventsOf(world.sent, 'text_completed'), written.slice(0, at)).toEqual([]);
    }
  });

  test('[J6] the first words of a generation are stored after a second, the next ones after five seconds', async () => {
    const { promise: later, resolve: goOn } = Promise.withResolvers<void>();
    const stream = async function* (): AsyncGenerator<ModelDelta> {
      yield { type: 'text', text: '<response final="true">a few' };
      yield { type: 'text', text: ' words' };
      await later;
      yield { type: 'text', text: ' and more' };
      await new Promise(() => undefined);
    };
    const { world, first, next } = await hostsOf({ stream });
    await send(first, 'tell me');
    await settle();
    world.clock.advance(limits.unsavedTextMs - 1);
    await settle();
    expect(savedText(world)).toBe('');
    world.clock.advance(1);
    await settle();
    goOn();
    await settle();
    world.clock.advance(limits.unsavedTextLaterMs - 1);
    await settle();
    expect(savedText(world)).toBe(' words');
    world.clock.advance(1);
    await settle();
    expect(savedText(world)).toBe(' words and more');
    const second = await next();
    expect((await lastResult(second)).responses[0]?.content).toBe('a few words and more');
  });

  test('[J6] text is stored in time, also if the clock is set back while it waits', async () => {
    const clock = new SetBackClock();
    const parts = [Promise.withResolvers<string>(), Promise.withResolvers<string>()];
    const stream = async function* (): AsyncGenerator<ModelDelta> {
      yield { type: 'text', text: '<response final="true">a few' };
      yield { type: 'text', text: ' words' };
      for (const { promise } of parts) yield { type: 'text', text: await promise };
      await new Promise(() => undefined);
    };
    const { world, first } = await hostsOf({ stream, clock });
    await send(first, 'tell me');
    await settle();
    clock.backMs = 300_000;
    clock.advance(limits.unsavedTextMs);
    await settle();
    expect(savedText(world)).toBe(' words');
    parts[0]?.resolve(' and');
    await settle();
    clock.backMs *= 2;
    const long = ' word'.repeat(limits.unsavedTextChars / 4);
    parts[1]?.resolve(long);
    await settle();
    expect(savedText(world)).toBe(` words and${long}`);
  });

  test('after three interrupted generations the run fails', async () => {
    const { first, next } = await hostsOf(speaking(...Array.from({ length: 9 }, () => ['<thought>hm', null])));
    await send(first, 'think');
    for (let crash = 1; crash <= limits.cutGenerations; crash += 1) {
      expect(await lastResult(await next())).toMatchObject({ status: 'running' });
    }
    expect(await lastResult(await next())).toMatchObject({ status: 'failed', error: { code: 'recovery_exhausted' } });
  });

  test('messages that waited behind it run in order, and interrupted protocol text is an error', async () => {
    const { world, first, next } = await hostsOf(
      speaking(
        ['<thought>hm', null],
        ...['one', 'two', 'three'].map((n) => [`<response final="true">${n}</response>`]),
      ),
    );
    for (const content of ['a', 'b', 'c']) await send(first, content);
    await first.kit.session.execute((async function* () {})(), null);
    const last = await next();
    await live(world, last);
    const results = await Promise.all(
      last.kit.session.runs().map(async (run) => await resultOf(last.kit.session, run)),
    );
    expect(results.map(({ response }) => response)).toEqual(['one', 'two', 'three', '']);
    expect(results.at(-1)).toMatchObject({ status: 'failed', error: { code: 'input_cut' } });
  });
});

describe('[J2] [J9] the journal', () => {
  test('a run whose hosts are lost repeatedly fails', async () => {
    const { first, next } = await hostsOf({ executors: { tool: () => new Promise(() => undefined) } });
    await begin(first, { name: '', text: ACTION('x') });
    for (let crash = 1; crash <= limits.recoveries; crash += 1) {
      expect((await lastResult(await next())).status).toBe('running');
    }
    expect(await lastResult(await next())).toMatchObject({ status: 'failed', error: { code: 'recovery_exhausted' } });
  });

  test('takes precedence: if this code would decide differently, the run ends without further actions', async () => {
    const { world, first, next } = await hostsOf();
    await begin(first, { name: '', text: `${ACTION('x', {}, { ms: 1_000 })}${ACTION('y', {}, { ms: 1_000 })}` });
    await settle();
    splitRows(world.disk);
    world.disk.exec(`UPDATE events SET type = 'action_skipped' WHERE type = 'action_started' AND action_id = 'y'`);
    const second = await next();
    expect(await lastResult(second)).toMatchObject({ status: 'failed', error: { code: 'interrupted' } });
    expect(world.executed).toHaveLength(2);
    expect(second.kit.faults).toMatchObject([{ code: 'not_recoverable' }]);
  });

  test('conditions and durations keep their recorded values, even if variables and durations have changed', async () => {
    const { world, first, next } = await hostsOf();
    const set = `<action type="internal" mode="sync" id="set">{"name":"set_variable","parameters":{"key":"go","value":true}}</action>`;
    await begin(first, { name: '', text: `${set}${ACTION('x', { when: 'go' }, { ms: 1_000 })}` });
    await settle();
    world.disk.exec(`UPDATE variables SET value = 'false'`);
    const second = await next();
    await live(world, second);
    expect((await lastResult(second)).actions.map(({ status }) => status)).toEqual(['completed', 'completed']);
  });
});

describe('[J8] approvals', () => {
  const supervised: NonNullable<KitOptions['agent']> = (agent) => ({
    ...agent,
    loop: { ...agent.loop, mode: 'supervised' },
  });
  const RISKY = ACTION('risky', {}, {}, 'python');
  const ID = `apr_${'1'.repeat(32)}`;
  const says = (text: string): string[] => [`<response final="true">${text}</response>`];
  /** Hosts of a supervised agent that has got a message. */
  async function asked(
    generations: readonly (readonly (string | null)[])[],
    options: KitOptions = {},
  ): Promise<Awaited<ReturnType<typeof hostsOf>> & { readonly model: ReturnType<typeof speaking> }> {
    const model = speaking(...generations);
    const hosts = await hostsOf({ agent: supervised, ...model, ...options });
    await send(hosts.first, 'do it');
    await settle();
    return { ...hosts, model };
  }

  test('a waiting run needs no host and no timer, survives both, and continues after the approval', async () => {
    const { world, first, next } = await asked([[RISKY], says('done')]);
    expect((await lastResult(first)).status).toBe('waiting');
    expect([first.kit.session.busy, world.clock.next]).toEqual([false, null]);
    await first.kit.settled();
    expect(first.kit.session.nextWake()).toBe(world.clock.now() + limits.approvalExpiryMs);
    let one = await next();
    one = await next();
    expect([one.kit.session.busy, world.clock.next]).toEqual([false, null]);
    expect(one.kit.session.nextWake()).toBe(world.clock.now() + limits.approvalExpiryMs);
    await one.kit.session.resolveApproval(ID, true, 'go ahead');
    await live(world, one);
    expect(await lastResult(one)).toMatchObject({ status: 'completed', response: 'done' });
    expect(world.executed).toHaveLength(1);
    expect(eventsOf(world.sent, 'warning').filter(({ data }) => data.code === 'run_recovered')).toEqual([]);
  });

  test.each(['torn', 'unsynced'] as const)(
    '[P13] a pending answer is completed once, wherever the host is lost after the decision (%s)',
    async (leaves) => {
      const options: KitOptions = {
        agent: supervised,
        script: [`${ACTION('c', {}, { value: 'R-1' }, 'python')}<response final="true">Refund $c.</response>`],
      };
      const parked = async (): Promise<World> => {
        const world = new World(true);
        const first = await host(world, null, options);
        await send(first, 'refund');
        await settle();
        first.sql.kill();
        return world;
      };
      const decide = async ({ kit }: Host): Promise<void> => {
        await kit.session.recover();
        // A client without an answer sends its decision again; the first one counts.
        await Promise.allSettled([kit.session.resolveApproval(ID, true, null)]);
      };
      for (let atAppend = 1; atAppend <= 9; atAppend += 1) {
        const world = await parked();
        const second = await host(world, { atAppend, leaves }, options);
        await Promise.race([decide(second), gone(second)]);
        if (!second.sql.crashed) await live(world, second);
        second.sql.kill();
        await settle();
        const last = await host(world, null, options);
        await decide(last);
        await live(world, last);
        checkJournal({ world, last });
        const result = await lastResult(last);
        expect(result, `crash at append ${atAppend}`).toMatchObject({
          status: 'completed',
          response: 'Refund R-1.',
          responses: [{ content: 'Refund R-1.', final: true }],
        });
        expect(last.kit.requests).toEqual([]);
        atMostOnce(world.executed);
      }
    },
  );

  test('a denial after a restart is reported to the model', async () => {
    const { world, next, model } = await asked([[RISKY], says('a pity')]);
    const one = await next();
    await one.kit.session.resolveApproval(ID, false, 'too dangerous');
    await live(world, one);
    expect(await lastResult(one)).toMatchObject({ status: 'completed', response: 'a pity' });
    expect(JSON.stringify(model.asked[1]?.messages)).toContain('too dangerous');
    expect(world.executed).toEqual([]);
  });

  test('an approval without a decision for seven days counts as denied, across a restart', async () => {
    const { world, next } = await asked([[RISKY], says('a pity')]);
    world.clock.advance(3 * 24 * 3_600_000);
    const one = await next();
    world.clock.advance(limits.approvalExpiryMs - 3 * 24 * 3_600_000 - 1);
    await settle();
    expect((await lastResult(one)).status).toBe('waiting');
    world.clock.advance(1);
    await expect(one.kit.session.resolveApproval(ID, true, null)).rejects.toMatchObject({
      code: 'approval_closed',
      details: { approval_status: 'expired' },
    });
    expect(one.kit.session.nextWake()).toBe(world.clock.now());
    await one.kit.session.wake();
    await live(world, one);
    expect(await lastResult(one)).toMatchObject({ status: 'completed', response: 'a pity' });
  });

  test('a run that was recovered and then waits keeps no timer of its recovery', async () => {
    const { world, next } = await asked([['<thought>hm', null], [RISKY]]);
    const one = await next();
    await settle();
    expect((await lastResult(one)).status).toBe('waiting');
    // The only timers left are those of the lost host's run, which would save its prompt.
    expect((world.clock.next ?? 0) - world.clock.now()).toBe(limits.unsavedTextLaterMs);
    world.clock.advance(limits.unsavedTextLaterMs);
    expect((world.clock.next ?? 0) - world.clock.now()).toBe(limits.runSeconds * 1_000 - limits.unsavedTextLaterMs);
  });

  test.each(['the same host', 'the next host'])(
    '[S4] background work of a waiting run goes on and keeps its host until it ends (%s)',
    async (which) => {
      const background = `<action type="tool" mode="fire_and_forget" id="bg">{"name":"echo","parameters":{"ms":5000,"fail_times":1},"retry":{"max_attempts":2,"delay":1}}</action>`;
      const { world, first, next } = await asked([[`${background}${RISKY}`], says('done')]);
      expect((await lastResult(first)).status).toBe('waiting');
      expect(first.kit.session.busy).toBe(true);
      const last = which === 'the same host' ? first : await next();
      for (let step = 0; step < 20 && last.kit.session.busy; step += 1) {
        world.clock.advance(1_000);
        await settle();
      }
      expect((await lastResult(last)).actions).toMatchObject([{ id: 'bg', status: 'completed', attempts: 2 }, {}]);
      expect([(await lastResult(last)).status, last.kit.session.busy]).toEqual(['waiting', false]);
      expect(last.kit.session.nextWake()).toBeGreaterThan(world.clock.now() + limits.provenMs);
      await last.kit.session.resolveApproval(ID, true, null);
      await live(world, last);
      expect(await lastResult(last)).toMatchObject({ status: 'completed', response: 'done' });
    },
  );

  test.each(['the same host', 'the next host'])(
    '[H1] a message after the decision waits for the approved action (%s)',
    async (which) => {
      const slow = ACTION('risky', {}, { ms: 500 }, 'python');
      const { world, first, next } = await asked([[slow], says('done'), says('and this')], { recover: {} });
      await first.kit.session.resolveApproval(ID, true, null);
      await send(first, 'and then?');
      await settle();
      expect(first.kit.session.runs().map(({ status }) => status)).toEqual(['running', 'queued']);
      const last = which === 'the same host' ? first : await next();
      await live(world, last);
      expect(last.kit.session.runs().map(({ status }) => status)).toEqual(['completed', 'completed']);
      const told = world.sent.filter(({ type }) => type === 'agent_started' || type === 'agent_completed');
      expect(told.map(({ type, run_id: run }) => `${type} ${run.at(-1)}`)).toEqual(
        [1, 2].flatMap((run) => [`agent_started ${run}`, `agent_completed ${run}`]),
      );
    },
  );

  test('an expired approval cannot be decided, even while the run continues', async () => {
    const { world, first } = await asked([[RISKY], ['<thought>well', null]]);
    world.clock.advance(limits.approvalExpiryMs);
    await first.kit.session.wake();
    await settle();
    expect(first.kit.session.busy).toBe(true);
    const late = first.kit.session.resolveApproval(ID, true, null);
    await expect(late).rejects.toMatchObject({ code: 'approval_closed', details: { approval_status: 'expired' } });
    expect(world.sent.filter(({ type }) => type === 'approval_resolved')).toEqual([]);
  });

  test('[H1] a new message after a restart cancels the open approval', async () => {
    const { world, next } = await asked([[RISKY], says('hello')]);
    const one = await next();
    await send(one, 'never mind');
    await live(world, one);
    expect(one.kit.session.runs().map(({ status }) => status)).toEqual(['cancelled', 'completed']);
  });
});

test('[J3] a run with a removed workflow ends with that error, and the next runs start', async () => {
  const kit = await sessionKit({ script: ['<response final="true">here</response>'] });
  const { run, runId } = await kit.session.workflow({});
  await kit.session.ended(run);
  expect(await resultOf(kit.session, kit.session.run(runId))).toMatchObject({
    status: 'failed',
    error: { code: 'unknown_workflow' },
  });
  await settle();
  expect(kit.session.busy).toBe(false);
  const message = await kit.session.message({ content: 'hi', ifBusy: 'reject', tokens: false, idempotencyKey: null });
  await kit.session.ended(message.run);
  expect(kit.session.run(message.runId).status).toBe('completed');
  expect(kit.faults).toEqual([]);
});
