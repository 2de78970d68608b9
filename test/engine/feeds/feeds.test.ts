/** Context feeds in the prompt (F1-F5), and the model's own changes of feeds (I). */
import { describe, expect, test } from 'vitest';
import type { ActionOutcome } from '../../../src/domain/action.ts';
import type { Json } from '../../../src/domain/json.ts';
// Loaded before a test's clock advances: the engine imports it when a model first changes a feed.
import '../../../src/catalog/schema/feed.ts';
import { bundled } from '../../support/bundled.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { AgentDefinition } from '../../../src/domain/manifests/agent.ts';
import type { FeedDefinition, FeedSource } from '../../../src/domain/manifests/feed.ts';
import type { SharedFeedRequest, SharedFeeds, SharedFeedValue } from '../../../src/domain/ports/shared-values.ts';
import { feedRefusal } from '../../../src/engine/feeds/feed-sources.ts';
import { feedOf } from '../../support/definitions.ts';
import { eventsOf } from '../../support/events.ts';
import { say, sessionKit, settle, resultOf } from '../../support/session-kit.ts';
import type { KitOptions, SessionKit } from '../../support/session-kit.ts';
import { send } from '../../support/send.ts';

const internal = (name: string, params: Record<string, Json> = {}): FeedSource => ({
  type: 'internal',
  name,
  action: null,
  params,
});
const tool = (params: Record<string, Json> = {}): FeedSource => ({ type: 'tool', name: 'echo', action: null, params });

const feed = (id: string, source: FeedSource, more: Partial<FeedDefinition> = {}): FeedDefinition =>
  feedOf(id, { source, ...more });

const having =
  (...feeds: FeedDefinition[]) =>
  (agent: AgentDefinition): AgentDefinition => ({
    ...agent,
    feeds,
    internalActions: { enabled: true, allowed: null, blocked: [] },
  });
const FINAL = '<response final="true">ok</response>';

/** The feeds in the prompt of a model call, by id. */
function shown(kit: SessionKit, call: number): Record<string, { age: string; value: string }> {
  const text = kit.requests[call]?.messages.at(-1)?.content ?? '';
  const blocks = [...text.matchAll(/<context_feed id="([^"]+)" age="([^"]+)">\n([\s\S]*?)\n<\/context_feed>/g)];
  return Object.fromEntries(blocks.map(([, id = '', age = '', value = '']) => [id, { age, value }]));
}

/** Sends a message and advances the clock until it is answered. */
async function ask(kit: SessionKit, content = 'hi'): Promise<void> {
  const answered = say(kit, content);
  const state = { done: false };
  void answered.then(() => (state.done = true));
  for (let turn = 0; turn < 50 && !state.done; turn += 1) {
    await settle();
    if (!state.done && kit.clock.next !== null) kit.clock.advance(Math.min(500, kit.clock.next - kit.clock.now()));
  }
  await answered;
}

describe('[F1] [F2] caches, deadlines and failures', () => {
  /** A source that answers when released, and counts its calls. */
  function source(): {
    readonly options: KitOptions;
    readonly calls: (() => void)[];
    value: Json;
    error: string | null;
    hang: boolean;
  } {
    const one = {
      calls: [] as (() => void)[],
      value: 'fresh' as Json,
      error: null as string | null,
      hang: false,
      options: {} as KitOptions,
    };
    const execute = async (): Promise<ActionOutcome> => {
      const outcome = (): ActionOutcome =>
        one.error === null
          ? { ok: true, output: one.value }
          : { ok: false, error: { code: 'down', message: one.error, retryable: false } };
      const gate = Promise.withResolvers<void>();
      one.calls.push(gate.resolve);
      if (one.hang) await gate.promise;
      return outcome();
    };
    one.options = { executors: { tool: execute } };
    return one;
  }

  test('feeds are fetched in parallel, and the model waits at most once for a hanging one', async () => {
    const one = source();
    one.hang = true;
    const kit = await sessionKit({
      ...one.options,
      script: [FINAL, FINAL],
      agent: having(
        feed('a', tool(), { onError: 'use_default', defaultValue: 'nothing yet' }),
        feed('b', tool()),
        feed('c', internal('iteration')),
      ),
    });
    const before = kit.clock.now();
    await ask(kit);
    expect(one.calls).toHaveLength(2);
    expect(kit.clock.now() - before).toBe(limits.feedDeadlineMs);
    expect(shown(kit, 0)).toEqual({ a: { age: '0s', value: 'nothing yet' }, c: { age: '2s', value: '1' } });
    const again = kit.clock.now();
    await ask(kit);
    expect(kit.clock.now()).toBe(again);
    expect(one.calls).toHaveLength(2);
    for (const answer of one.calls) answer();
    await settle();
    expect(kit.session.feeds().find(({ id }) => id === 'b')).toMatchObject({ value: 'fresh', error: null });
  });
});

test('[S7] a periodic feed repeats unsafe effects only if allow_unsafe permits it, for a feed of the model too', () => {
  const resolved = bundled.agent('notes_keeper');
  if (resolved === null) throw new Error('the bundled catalogue has no notes_keeper');
  const counting = (more: Partial<FeedDefinition>, action = 'append'): string | null =>
    feedRefusal(feed('f', { type: 'relic', name: 'event_log', action, params: {} }, more), resolved);
  const periodic = { when: 'periodic', intervalMs: 10_000 } as const;
  expect(counting(periodic)).toBe(
    '"event_log" has unsafe effects, and a periodic feed would repeat them (allow_unsafe: true allows it)',
  );
  expect([counting({ ...periodic, allowUnsafe: true }), counting({}), counting(periodic, 'tail')]).toEqual([
    null,
    null,
    null,
  ]);
});

describe('[F3] periodic feeds', () => {
  const agent = having(
    feed('fast', tool({ value: 1 }), { when: 'periodic', intervalMs: 10_000 }),
    feed('slow', tool({ value: 2 }), { when: 'periodic', intervalMs: 60_000 }),
  );

  test('several intervals share one alarm, which stops while the session is idle and restarts with the next message', async () => {
    let calls = 0;
    const kit = await sessionKit({
      script: [FINAL, FINAL],
      agent,
      executors: {
        tool: async ({ parameters }) => ({
          ok: true,
          output: (parameters['value'] ?? null) === 1 ? (calls += 1) : 'slow',
        }),
      },
    });
    await ask(kit);
    expect(kit.session.nextWake()).toBe(kit.clock.now() + 10_000);
    for (let wakes = 0; wakes < 6; wakes += 1) {
      kit.clock.advance((kit.session.nextWake() ?? 0) - kit.clock.now());
      await kit.session.wake();
    }
    expect(calls).toBe(7);
    expect(kit.session.feeds().map(({ id, updated_at: at }) => [id, at])).toEqual([
      ['fast', kit.clock.now()],
      ['slow', kit.clock.now()],
    ]);
    kit.clock.advance(limits.feedIdleMs);
    await kit.session.wake();
    expect(calls).toBe(7);
    expect(kit.session.nextWake()).toBe(kit.session.expiresAt);
    await ask(kit);
    expect(kit.session.nextWake()).toBe(kit.clock.now() + 10_000);
  });

  test.each(['execution', 'child'] as const)('those of a session of kind %s stop with its run', async (kind) => {
    let calls = 0;
    const answer = Promise.withResolvers<void>();
    const kit = await sessionKit({
      kind,
      agent: having(feed('f', tool(), { when: 'periodic', intervalMs: 10_000 })),
      executors: { tool: async () => ({ ok: true, output: (calls += 1) }) },
      stream: async function* () {
        await answer.promise;
        yield { type: 'text', text: FINAL };
        yield { type: 'finish', reason: 'stop' };
      },
    });
    const run = await send(kit, 'hi');
    await settle();
    expect(kit.session.nextWake()).toBe(kit.clock.now() + 10_000);
    kit.clock.advance(10_000);
    await kit.session.wake();
    expect(calls).toBe(2);
    answer.resolve();
    await kit.session.ended(run.run);
    await kit.settled();
    expect(kit.session.nextWake()).toBe(kit.session.expiresAt);
    kit.clock.advance(10_000);
    await kit.session.wake();
    expect(calls).toBe(2);
  });

  test('a new host continues them at once', async () => {
    const kit = await sessionKit({ script: [FINAL], agent });
    await ask(kit);
    kit.clock.advance(25_000);
    const next = await sessionKit({ agent, sql: kit.sql, clock: kit.clock });
    await next.session.wake();
    expect(next.session.feeds()[0]?.['updated_at']).toBe(kit.clock.now());
  });
});

describe('[F6] shared feeds', () => {
  const SHARED = { when: 'periodic', intervalMs: 10_000, shared: true } as const;
  const agent = having(feed('f', tool({ value: 1 }), SHARED));

  /** Values of shared feeds that the test sets. */
  class Shared implements SharedFeeds {
    readonly requests: SharedFeedRequest[] = [];
    answer: SharedFeedValue | Promise<SharedFeedValue> = { value: null, at: null, error: null };
    read = async (request: SharedFeedRequest): Promise<SharedFeedValue> => {
      this.requests.push(request);
      return await this.answer;
    };
  }

  test('a fresh value is used without a request, and a stale one is read with its time', async () => {
    const shared = new Shared();
    const kit = await sessionKit({ script: [FINAL, FINAL, FINAL], agent, sharedFeeds: shared });
    shared.answer = { value: 'of all', at: kit.clock.now() - 4_000, error: null };
    await ask(kit);
    expect(shown(kit, 0)['f']).toEqual({ age: '4s', value: 'of all' });
    kit.clock.advance(5_000);
    await ask(kit);
    expect(shared.requests).toHaveLength(1);
    expect(shown(kit, 1)['f']).toEqual({ age: '9s', value: 'of all' });
    expect(kit.session.nextWake()).toBe(kit.clock.now() + 1_000);
    kit.clock.advance(1_000);
    shared.answer = { value: 'next', at: kit.clock.now(), error: null };
    await kit.session.wake();
    expect(kit.session.feeds()[0]).toMatchObject({ value: 'next', updated_at: kit.clock.now(), shared: true });
  });

  test('the request names everything that the value depends on, and how long the caller waits', async () => {
    const shared = new Shared();
    const kit = await sessionKit({ script: [FINAL], agent, sharedFeeds: shared });
    await ask(kit);
    kit.clock.advance(10_000);
    await kit.session.wake();
    const [prompt, alarm] = shared.requests;
    expect(prompt).toMatchObject({
      owner: null,
      source: tool({ value: 1 }),
      tool: { name: 'echo', version: expect.any(String) as string },
      relic: null,
      maxAgeMs: 10_000,
      maxChars: 4_000,
      waitMs: limits.sharedFeedWaitMs,
    });
    expect(alarm).toEqual({ ...prompt, waitMs: limits.feedFetchMs });
  });

  test('an error keeps the last value with its age, and readers are told', async () => {
    const shared = new Shared();
    const kit = await sessionKit({ script: [FINAL, FINAL, FINAL], agent, sharedFeeds: shared });
    const at = kit.clock.now();
    shared.answer = { value: 'old', at, error: null };
    await ask(kit);
    kit.clock.advance(20_000);
    shared.answer = { value: 'old', at, error: 'down' };
    await ask(kit);
    expect(shown(kit, 1)['f']).toEqual({ age: '20s', value: 'old' });
    shared.answer = { value: 'old', at: kit.clock.now(), error: null };
    await ask(kit);
    expect(eventsOf(kit.events, 'context_feed_updated').map(({ data }) => data)).toEqual([
      { id: 'f', value: 'old' },
      { id: 'f', error: 'down' },
      { id: 'f', value: 'old' },
    ]);
  });

  test('a session whose shared value cannot be read keeps its own, and a hanging one delays a prompt once', async () => {
    const shared = new Shared();
    const kit = await sessionKit({ script: [FINAL, FINAL, FINAL], agent, sharedFeeds: shared });
    shared.answer = { value: 'mine', at: kit.clock.now(), error: null };
    await ask(kit);
    kit.clock.advance(10_000);
    shared.answer = Promise.reject(new Error('the object is gone'));
    await ask(kit);
    expect(shown(kit, 1)['f']).toEqual({ age: '10s', value: 'mine' });
    expect(kit.session.feeds()[0]?.['error']).toBe('the object is gone');
    shared.answer = new Promise(() => undefined);
    const before = kit.clock.now();
    await ask(kit);
    expect(kit.clock.now() - before).toBe(limits.feedDeadlineMs);
    expect(shown(kit, 2)['f']).toEqual({ age: '12s', value: 'mine' });
  });

  test('a value that was cut for all is not cut again', async () => {
    const shared = new Shared();
    const value = `${'x'.repeat(4_000)}\n[cut after 4000 of 9000 characters]`;
    shared.answer = { value, at: 1, error: null };
    const kit = await sessionKit({ script: [FINAL], agent, sharedFeeds: shared });
    await ask(kit);
    expect(shown(kit, 0)['f']?.value).toBe(value);
  });

  test('a model adds no shared feed, and a feed that it changes is its own', async () => {
    const shared = new Shared();
    const act = (name: string, parameters: Record<string, Json>): string =>
      `<action type="internal" mode="sync" id="${name}">${JSON.stringify({ name, parameters })}</action>`;
    const kit = await sessionKit({
      agent,
      sharedFeeds: shared,
      script: [
        act('add_context_feed', {
          id: 'g',
          shared: true,
          cache_ttl: 60,
          source: { type: 'tool', name: 'echo', params: { value: 2 } },
        }),
        act('update_context_feed', { id: 'f', source: { type: 'tool', name: 'echo', params: { value: 3 } } }),
        FINAL,
      ],
    });
    await ask(kit);
    const failed = kit.events.filter(({ type }) => type === 'action_failed').map(({ data }) => JSON.stringify(data));
    expect(failed).toEqual([expect.stringContaining('shared: is allowed only in manifests')]);
    const requests = shared.requests.length;
    kit.clock.advance(10_000);
    await kit.session.wake();
    expect(shared.requests).toHaveLength(requests);
    expect(kit.session.feeds()[0]).toMatchObject({ value: { value: 3 }, error: null });
    expect(kit.session.feeds()[0]).not.toHaveProperty('shared');
  });
});

test('[F1] a session whose agent is missing has no feeds and no wake-up for them', async () => {
  let gone = false;
  const kit = await sessionKit({
    script: [FINAL],
    gone: () => gone,
    agent: having(feed('f', internal('random'), { when: 'periodic', intervalMs: 10_000 })),
  });
  await ask(kit);
  expect(kit.session.feeds()).toHaveLength(1);
  gone = true;
  expect([kit.session.feeds(), kit.session.nextWake()]).toEqual([[], kit.session.expiresAt]);
  kit.clock.advance(10_000);
  const { lastSeq } = kit.session;
  await kit.session.wake();
  expect(kit.session.lastSeq).toBe(lastSeq);
});

test('[F2] a change between runs is an event of the latest run, without an iteration', async () => {
  const kit = await sessionKit({
    script: [FINAL],
    agent: having(feed('f', internal('system_clock', { format: 'unix' }), { when: 'periodic', intervalMs: 10_000 })),
  });
  const changes = (): unknown[] =>
    eventsOf(kit.events, 'context_feed_updated').map(({ run_id: run, iteration, timestamp }) => [
      run,
      iteration,
      timestamp,
    ]);
  const of = (run: number): string => `run_${'a'.repeat(32)}_${run}`;
  await ask(kit);
  expect(changes()).toEqual([[of(1), 1, kit.clock.now()]]);
  kit.clock.advance(10_000);
  await kit.session.wake();
  expect(changes().slice(-1)).toEqual([[of(1), 0, kit.clock.now()]]);
  await settle();
  expect(kit.faults).toEqual([]);
});

describe('[I] feed actions of the model', () => {
  const act = (name: string, parameters: Record<string, Json>): string =>
    `<action type="internal" mode="sync" id="${name}">${JSON.stringify({ name, parameters })}</action>`;

  test('a feed can be added, updated, listed and removed, with an effect in the next iteration', async () => {
    const kit = await sessionKit({
      agent: having(),
      script: [
        act('add_context_feed', { id: 'clock', type: 'internal', source: { name: 'system_clock' } }),
        act('update_context_feed', {
          id: 'clock',
          source: { type: 'internal', name: 'system_clock', params: { format: 'unix' } },
        }),
        act('list_context_feeds', {}) + act('remove_context_feed', { id: 'clock' }),
        FINAL,
      ],
    });
    await ask(kit);
    expect(shown(kit, 0)).toEqual({});
    expect(shown(kit, 1)['clock']?.value).toMatch(/^1970-01-01T/);
    expect(shown(kit, 2)['clock']?.value).toBe('1000');
    expect(shown(kit, 3)).toEqual({});
    const audit = kit.events.filter(({ type }) => type === 'context_feed_updated').map(({ data }) => data);
    expect(audit).toEqual(
      expect.arrayContaining([
        { id: 'clock', added: true },
        { id: 'clock', updated: true },
        { id: 'clock', removed: true },
      ]),
    );
  });

  test('[F3] a session has at most eight periodic feeds, including those that its model adds', async () => {
    const source = { type: 'internal', name: 'iteration' };
    const periodic = { when: 'periodic', intervalMs: 10_000 } as const;
    const mine = Array.from({ length: limits.periodicFeeds - 1 }, (_, at) =>
      feed(`p${at}`, internal('iteration'), periodic),
    );
    const kit = await sessionKit({
      agent: having(...mine, feed('quiet', internal('iteration'))),
      script: [
        act('add_context_feed', { id: 'eighth', type: 'periodic', interval: 5, source }),
        act('add_context_feed', { id: 'ninth', type: 'periodic', source }),
        act('update_context_feed', { id: 'quiet', type: 'periodic' }),
        act('update_context_feed', { id: 'eighth', interval: 1 }),
        act('update_context_feed', { id: 'eighth', interval: '6s', max_tokens: 10 }),
        FINAL,
      ],
    });
    await ask(kit);
    const refused = kit.events.filter(({ type }) => type === 'action_failed').map(({ data }) => JSON.stringify(data));
    expect(refused).toHaveLength(3);
    expect(refused[0]).toContain('A session may have at most 8 periodic feeds, and there are 8: p0, p1');
    expect(refused[1]).toContain('A session may have at most 8 periodic feeds, and there are 8: p0, p1');
    expect(refused[2]).toContain('must be at least 5 s (the setting FEED_MIN_SECONDS), found 1');
    expect(kit.session.feeds().find(({ id }) => id === 'eighth')).toMatchObject({ interval: 6, max_tokens: 10 });
    expect(kit.session.feeds().find(({ id }) => id === 'quiet')).toMatchObject({ type: 'on_demand' });
  });

  test.each([
    ['add_context_feed', { id: 'f', type: 'tool', source: { name: 'launch_rockets' } }, 'not_allowed'],
    ['remove_context_feed', { id: 'none' }, 'invalid_parameters'],
  ])('%s %o is refused: %s', async (name, parameters, code) => {
    const kit = await sessionKit({ agent: having(), script: [act(name, parameters), FINAL] });
    await ask(kit);
    const [run] = kit.session.runs();
    expect(run === undefined ? null : (await resultOf(kit.session, run)).actions[0]).toMatchObject({
      status: 'failed',
      error: { code },
    });
  });

  test('[F3] an interval of a hundred years is refused: no alarm could be set for it', async () => {
    const kit = await sessionKit({
      agent: having(),
      script: [
        act('add_context_feed', {
          id: 'n',
          type: 'periodic',
          interval: '36526d',
          source: { type: 'internal', name: 'iteration' },
        }),
        FINAL,
      ],
    });
    await ask(kit);
    const next = await sessionKit({ agent: having(), sql: kit.sql, clock: kit.clock });
    for (let turn = 0; turn < 3; turn += 1) {
      await next.session.wake();
      kit.clock.advance(1);
      expect(next.session.nextWake()).toBeGreaterThan(kit.clock.now() + 1_000);
    }
    expect(next.session.feeds()).toEqual([]);
    const failed = kit.events.find(({ type }) => type === 'action_failed');
    expect(JSON.stringify(failed?.data)).toContain('must be at most 36525 days');
  });

  test('an added feed survives the run and the host', async () => {
    const kit = await sessionKit({
      agent: having(),
      script: [act('add_context_feed', { id: 'n', type: 'internal', source: { name: 'iteration' } }), FINAL],
    });
    await ask(kit);
    const next = await sessionKit({ agent: having(), script: [FINAL], sql: kit.sql, clock: kit.clock });
    await ask(next);
    expect(shown(next, 0)['n']?.value).toBe('1');
  });

  test('clear_context removes variables and earlier results from references and the prompt, and keeps feeds', async () => {
    const kit = await sessionKit({
      agent: having(feed('n', internal('iteration'))),
      script: [
        `<action type="tool" mode="sync" id="old">{"name":"echo","parameters":{"secret":"from before"}}</action>${act('set_variable', { key: 'v', value: 1 })}`,
        act('clear_context', {}),
        '<response final="true">$old.secret $v</response>',
        FINAL,
      ],
    });
    await ask(kit);
    const [run] = kit.session.runs();
    const responses = run === undefined ? [] : (await resultOf(kit.session, run)).responses;
    expect(responses[0]?.content).toBe('$old.secret $v');
    const results = (call: number): string =>
      JSON.stringify(kit.requests[call]?.messages.filter(({ role }) => role === 'user'));
    expect(results(1)).toContain('from before');
    expect(results(2)).not.toContain('from before');
    expect(shown(kit, 2)['n']?.value).toBe('3');
  });
});
