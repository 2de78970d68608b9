/** Feeds that a text refers to are fetched before the text is acted on (F2, P12, P13, J1). */
import { describe, expect, test } from 'vitest';
import type { ActionOutcome } from '../../../src/domain/action.ts';
// Loaded before a test's clock advances: the engine imports it when a feed is added.
import '../../../src/catalog/schema/feed.ts';
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { AgentDefinition } from '../../../src/domain/manifests/agent.ts';
import type { FeedDefinition } from '../../../src/domain/manifests/feed.ts';
import type { RunResult } from '../../../src/view/result.ts';
import type { ActionCall } from '../../../src/executors/executor.ts';
import { fakeRunner } from '../../executors/support.ts';
import { feedOf } from '../../support/definitions.ts';
import { eventsOf } from '../../support/events.ts';
import { resultOf, say, sessionKit, settle } from '../../support/session-kit.ts';
import { call, finish } from '../generation/deltas.ts';
import type { KitOptions, SessionKit } from '../../support/session-kit.ts';

function feed(id: string, params: JsonObject = {}, more: Partial<FeedDefinition> = {}): FeedDefinition {
  const source = { type: 'tool', name: 'echo', action: null, params: { value: `value of ${id}`, ...params } } as const;
  return feedOf(id, { source, ...more });
}

const having =
  (...feeds: FeedDefinition[]) =>
  (agent: AgentDefinition): AgentDefinition => ({
    ...agent,
    feeds,
    internalActions: { enabled: true, allowed: null, blocked: [] },
  });

/** Tools that return their `value`; `fail: true` fails, `silent: true` never answers. */
function tools(): KitOptions & { readonly called: ActionCall[] } {
  const called: ActionCall[] = [];
  return {
    called,
    executors: {
      tool: async (call): Promise<ActionOutcome> => {
        called.push(call);
        const { value = null, fail, silent } = call.parameters;
        if (silent === true) await new Promise(() => undefined);
        if (fail === true) return { ok: false, error: { code: 'down', message: 'no network', retryable: false } };
        return { ok: true, output: value };
      },
    },
  };
}

const isFeed = ({ runtimeKey }: ActionCall): boolean => runtimeKey.includes('/feed/');

/** Runs posted text, and advances the clock until it has ended. */
async function post(kit: SessionKit, ...pieces: string[]): Promise<RunResult> {
  const chunks = async function* (): AsyncGenerator<string> {
    yield* pieces;
  };
  const run = await kit.session.execute(chunks(), pieces.join(''));
  const state = { done: false };
  void kit.session.ended(run.run).then(() => (state.done = true));
  for (let turn = 0; turn < 50 && !state.done; turn += 1) {
    await settle();
    if (!state.done && kit.clock.next !== null) kit.clock.advance(kit.clock.next - kit.clock.now());
  }
  return await resultOf(kit.session, kit.session.run(run.runId));
}

const ECHO = (id: string, value: Json, fields: JsonObject = {}): string =>
  `<action type="tool" id="${id}">${JSON.stringify({ name: 'echo', parameters: { value }, ...fields })}</action>`;
const ADD = (id: string, source: JsonObject = { type: 'tool', name: 'echo', params: { value: 'added' } }): string =>
  `<action type="internal" id="add">${JSON.stringify({ name: 'add_context_feed', parameters: { id, source } })}</action>`;
const answer = (text: string): string => `<response final="true">${text}</response>`;

describe('[P12] posted text that refers to feeds', () => {
  test.each([
    ['at once', (text: string) => [text]],
    ['one character at a time', (text: string) => [...text]],
  ])('has their values in actions and answers, each fetched once (%s)', async (_how, cut) => {
    const given = tools();
    const kit = await sessionKit({ ...given, agent: having(feed('rate', { value: { usd: 7 } }), feed('unused')) });
    const text = `${ECHO('a', '$rate.usd')}${ECHO('b', 'at $rate.usd')}${answer('$a, $b, $rate.usd')}`;
    const result = await post(kit, ...cut(text));
    expect(result).toMatchObject({ status: 'completed', response: '7, at 7, 7', warnings: [] });
    expect(given.called.filter(isFeed)).toHaveLength(1);
    expect(kit.faults).toEqual([]);
  });

  test('[P14] has them in the inputs of code, and in the environment of commands', async () => {
    const runner = fakeRunner({ stdout: 'done' });
    const kit = await sessionKit({
      ...tools(),
      runner,
      agent: (agent) => having(feed('rate', { value: 7 }))({ ...agent, capabilities: ['python', 'shell'] }),
    });
    await post(
      kit,
      '<action type="python" id="p">{"code": "x", "inputs": {"at": "$rate"}}</action>',
      '<action type="shell" id="s">{"command": "echo $rate"}</action>',
    );
    expect(runner.jobs.map(({ inputs }) => inputs)).toEqual([{ at: 7 }, { rate: 7 }]);
  });

  test('[S9] has them in conditions', async () => {
    const kit = await sessionKit({ ...tools(), agent: having(feed('rate', { value: 7 })) });
    const text = `${ECHO('a', 1, { when: 'rate > 5' })}${ECHO('b', 1, { when: 'rate > 9' })}`;
    const { actions } = await post(kit, text);
    expect(actions.map(({ status }) => status)).toEqual(['completed', 'skipped']);
  });

  test('[J1] has the values in the journal before they are used', async () => {
    const kit = await sessionKit({ ...tools(), agent: having(feed('rate', { value: 7 })) });
    await post(kit, ECHO('a', '$rate'));
    const [updated] = eventsOf(kit.events, 'context_feed_updated');
    const [started] = eventsOf(kit.events, 'action_started');
    expect(updated?.data).toEqual({ id: 'rate', value: 7 });
    expect(updated?.seq).toBeLessThan(started?.seq ?? 0);
  });

  test('[S2] starts the actions before the reference first', async () => {
    const given = tools();
    const kit = await sessionKit({ ...given, agent: having(feed('slow', { silent: true })) });
    const run = await kit.session.execute(
      (async function* () {
        yield `${ECHO('a', 1)}${ECHO('b', '$slow')}`;
      })(),
      null,
    );
    await settle();
    expect(given.called.filter((call) => !isFeed(call)).map(({ action }) => action.id)).toEqual(['a']);
    await kit.session.cancel(run.runId);
    await settle();
    expect(kit.session.run(run.runId)).toMatchObject({ status: 'cancelled' });
  });

  test('is not delayed by feeds that it does not refer to', async () => {
    const given = tools();
    const kit = await sessionKit({ ...given, agent: having(feed('slow', { silent: true }), feed('a')) });
    const result = await post(kit, `${ECHO('a', 1)}${ECHO('x', '$a $$slow $(slow)')}${answer('$a $x')}`);
    expect(result).toMatchObject({ response: '1 1 $slow $(slow)' });
    expect(given.called.filter(isFeed)).toEqual([]);
  });

  test('a variable of the same name wins, and its feed is not fetched', async () => {
    const given = tools();
    const kit = await sessionKit({ ...given, variables: { rate: 'mine' }, agent: having(feed('rate')) });
    expect((await post(kit, answer('$rate'))).response).toBe('mine');
    expect(given.called).toEqual([]);
  });

  test('a disabled feed is not fetched', async () => {
    const given = tools();
    const off = feed('off', {}, { enabled: false, defaultValue: 'off', onError: 'use_default' });
    const kit = await sessionKit({ ...given, agent: having(off) });
    expect((await post(kit, answer('$off'))).response).toBe('off');
    expect(given.called).toEqual([]);
  });

  test('an expired value is fetched again', async () => {
    const given = tools();
    const kit = await sessionKit({ ...given, agent: having(feed('rate', {}, { cacheTtlMs: 60_000 })) });
    await post(kit, answer('$rate'));
    await post(kit, answer('$rate'));
    expect(given.called.filter(isFeed)).toHaveLength(1);
    kit.clock.advance(60_000);
    await post(kit, answer('$rate'));
    expect(given.called.filter(isFeed)).toHaveLength(2);
  });
});

describe('[P13] a feed that cannot be read', () => {
  const TEXT = `${ECHO('a', 1)}${ECHO('b', '$down')}${ECHO('c', 'x $down')}${answer('$a, $b, $c, $down')}`;

  test.each([
    ['fails', { fail: true }, 'down: no network'],
    ['does not answer', { silent: true }, `it did not answer within ${limits.feedReferenceMs / 1_000} s`],
  ])('and %s has the value of a failed producer, with one warning; everything else runs', async (_why, how, why) => {
    const given = tools();
    const kit = await sessionKit({ ...given, agent: having(feed('down', how)) });
    const result = await post(kit, TEXT);
    expect(result.status).toBe('completed');
    expect(result.response).toBe('1, [b: missing], x [down: failed], [down: failed]');
    expect(result.warnings.filter(({ code }) => code === 'feed_unavailable')).toEqual([
      { code: 'feed_unavailable', message: `The feed "down" could not be read: ${why}; it has no value` },
    ]);
    expect(given.called.filter(isFeed)).toHaveLength(1);
  });

  test('has its default, with a warning', async () => {
    const down = feed('down', { fail: true }, { defaultValue: 'none', onError: 'use_default' });
    const kit = await sessionKit({ ...tools(), agent: having(down) });
    expect(await post(kit, answer('$down'))).toMatchObject({
      response: 'none',
      warnings: [{ code: 'feed_unavailable', message: expect.stringContaining('its default is used') as string }],
    });
  });

  test('has its earlier value, with a warning that names its age', async () => {
    const given = tools();
    const kit = await sessionKit({ ...given, agent: having(feed('rate', { value: 7 })) });
    await post(kit, answer('$rate'));
    kit.clock.advance(30_000);
    const tool = given.executors?.tool;
    if (given.executors !== undefined && tool !== undefined) {
      given.executors.tool = async (call, context) =>
        await tool({ ...call, parameters: { ...call.parameters, fail: true } }, context);
    }
    const second = await sessionKit({
      ...given,
      sql: kit.sql,
      clock: kit.clock,
      agent: having(feed('rate', { value: 7 })),
    });
    expect(await post(second, answer('$rate'))).toMatchObject({
      response: '7',
      warnings: [{ message: expect.stringContaining('its value of 30 s ago is used') as string }],
    });
  });
});

describe('[I] a feed that the text adds', () => {
  test('has its value in later actions and answers', async () => {
    const given = tools();
    const kit = await sessionKit({ ...given, agent: having() });
    const result = await post(kit, `${ADD('mine')}${ECHO('a', 'it is $mine')}${answer('$a: $mine')}`);
    expect(result).toMatchObject({ response: 'it is added: added', warnings: [] });
    expect(result.actions[0]).toMatchObject({ status: 'completed', output: { id: 'mine', value: 'added' } });
    expect(given.called.filter(isFeed)).toHaveLength(1);
  });

  test('that cannot be read: the action says why', async () => {
    const kit = await sessionKit({ ...tools(), agent: having() });
    const source = { type: 'tool', name: 'echo', params: { fail: true } };
    const result = await post(kit, `${ADD('mine', source)}${answer('$mine')}`);
    expect(result.response).toBe('[mine: failed]');
    expect(result.actions[0]).toMatchObject({ status: 'completed', output: { error: 'down: no network' } });
  });

  test('with a source that does not exist: the action fails, and so does what refers to it', async () => {
    const kit = await sessionKit({ ...tools(), agent: having() });
    const text = `${ADD('mine', { type: 'relic', name: 'nothing' })}${ECHO('a', '$mine')}${answer('$mine')}`;
    const result = await post(kit, text);
    expect(result.actions).toMatchObject([
      { status: 'failed', error: { code: 'not_allowed', message: expect.stringContaining('"nothing"') as string } },
      { status: 'skipped' },
    ]);
    expect(result.response).toBe('[mine: failed]');
  });

  test('again with the same definition: the same feed', async () => {
    const given = tools();
    const kit = await sessionKit({ ...given, agent: having() });
    await post(kit, ADD('mine'));
    expect((await post(kit, `${ADD('mine')}${answer('$mine')}`)).response).toBe('added');
    const other = { type: 'tool', name: 'echo', params: { value: 'other' } };
    expect((await post(kit, ADD('mine', other))).actions[0]).toMatchObject({
      error: { message: 'The feed "mine" already exists: update or remove it' },
    });
  });

  test('a feed that is switched on has its value in later text', async () => {
    const kit = await sessionKit({ ...tools(), agent: having(feed('off', {}, { enabled: false })) });
    const update = `<action type="internal" id="u">{"name":"update_context_feed","parameters":{"id":"off","enabled":true}}</action>`;
    expect((await post(kit, `${update}${ECHO('a', '$off')}${answer('$a, $off')}`)).response).toBe(
      'value of off, value of off',
    );
  });
});

describe('[I] add_context_feed of a relic', () => {
  const keeper = (): KitOptions & { readonly asked: string[] } => {
    const asked: string[] = [];
    return {
      asked,
      from: 'notes_keeper',
      agent: having(),
      executors: {
        relic: async ({ action, parameters }) => {
          asked.push(`${action.name} ${JSON.stringify(parameters)}`);
          return { ok: true, output: ['an error'] };
        },
      },
    };
  };
  const added = async (source: JsonObject): Promise<{ asked: readonly string[]; result: RunResult }> => {
    const given = keeper();
    const kit = await sessionKit(given);
    const result = await post(
      kit,
      `${ADD('recent_errors', { type: 'relic', ...source })}${answer('found $recent_errors')}`,
    );
    return { asked: given.asked, result };
  };

  test.each([
    ['the first endpoint', { filter: 'ERROR', since: '1h' }, 'event_log.tail'],
    ['a later endpoint, if the first does not accept them', { entry: 'x' }, 'event_log.append'],
  ])('without an endpoint calls %s', async (_which, params, name) => {
    const { asked, result } = await added({ name: 'event_log', params });
    expect(asked).toEqual([`${name} ${JSON.stringify(params)}`]);
    expect(result).toMatchObject({
      response: 'found ["an error"]',
      actions: [{ status: 'completed', output: { source: { action: name.split('.')[1] }, value: ['an error'] } }],
    });
  });

  test.each([
    [
      'does not exist',
      { name: 'event_logs' },
      'not_allowed',
      'No relic is called "event_logs" (did you mean "event_log"?)',
    ],
    ['is not imported', { name: 'key_value' }, 'not_allowed', 'does not import the relic "key_value" (it may use:'],
    [
      'has no such endpoint',
      { name: 'event_log', action: 'tails' },
      'not_allowed',
      'has no endpoint "tails" (did you mean',
    ],
    [
      'gets parameters that do not fit',
      { name: 'notes', action: 'get', params: {} },
      'invalid_parameters',
      'source.params do not fit the relic "notes.get": ',
    ],
    [
      'gets parameters that no endpoint accepts',
      { name: 'event_log', params: { color: 'red' } },
      'invalid_parameters',
      'source.params do not fit the relic "event_log.tail": ',
    ],
  ])('fails at once if the relic %s', async (_why, source, code, message) => {
    const { asked, result } = await added(source);
    expect(result.actions).toMatchObject([
      { status: 'failed', error: { code, message: expect.stringContaining(message) as string } },
    ]);
    expect([asked, result.response]).toEqual([[], 'found [recent_errors: failed]']);
  });
});

describe('[F2] a model that refers to a feed', () => {
  test('whose fetch failed for the prompt causes another fetch', async () => {
    const state = { fail: true };
    const kit = await sessionKit({
      executors: {
        tool: async () => {
          const error = { code: 'down', message: 'no network', retryable: false };
          return state.fail ? { ok: false, error } : { ok: true, output: 7 };
        },
      },
      script: [
        () => {
          state.fail = false;
          return answer('it is $rate');
        },
      ],
      agent: having(feed('rate', {}, { onError: 'skip' })),
    });
    expect(await say(kit, 'hi')).toMatchObject({ response: 'it is 7', warnings: [] });
  });

  test('that its prompt had causes no other fetch', async () => {
    const given = tools();
    const kit = await sessionKit({ ...given, script: [answer('it is $rate')], agent: having(feed('rate')) });
    expect(await say(kit, 'hi')).toMatchObject({ response: 'it is value of rate' });
    expect(given.called.filter(isFeed)).toHaveLength(1);
  });

  test('in a native call has its value', async () => {
    const kit = await sessionKit({
      ...tools(),
      script: [[call('echo', '{"value": "$mine"}', 'c'), finish()], answer('$c')],
      agent: having(feed('mine')),
    });
    expect(await say(kit, 'hi')).toMatchObject({ response: 'value of mine' });
  });
});
