/** The session's own feed sources (F5), and the reasons to refuse a source. */
import { describe, expect, test } from 'vitest';
import { bundled } from '../../support/bundled.ts';
import type { ActionOutcome } from '../../../src/domain/action.ts';
import { FairQueue, ThreadShare } from '../../../src/domain/fair-queue.ts';
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { FeedDefinition, FeedSource } from '../../../src/domain/manifests/feed.ts';
import type { ResolvedAgent } from '../../../src/domain/manifests/resolved.ts';
import type { RunnerClient } from '../../../src/domain/ports/runner.ts';
import { Pacer } from '../../../src/domain/work.ts';
import { feedRefusal, fetchFeed } from '../../../src/engine/feeds/feed-sources.ts';
import type { FeedPorts } from '../../../src/engine/feeds/feed-ports.ts';
import { SessionVariables } from '../../../src/engine/session/session-variables.ts';
import type { ActionCall, ActionContext, Executor } from '../../../src/executors/executor.ts';
import { runIdOf } from '../../../src/journal/run-id.ts';
import { newJournal, SESSION_ID, SESSION_RECORD } from '../../journal/journal-kit.ts';
import { feedOf } from '../../support/definitions.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { openNodeSql } from '../../support/node-sql.ts';

const assistant = (): ResolvedAgent => {
  const resolved = bundled.agent('assistant');
  if (resolved === null) throw new Error('the bundled catalogue has no assistant');
  return resolved;
};

/** 2026-03-29T00:30:00.500Z, half an hour before daylight saving time begins in Berlin. */
const NOW = Date.UTC(2026, 2, 29, 0, 30, 0, 500);

function feed(source: Partial<FeedSource>): FeedDefinition {
  return feedOf('f', { source: { type: 'internal', name: 'system_clock', action: null, params: {}, ...source } });
}

function ports(moment: FeedPorts['moment'] = null, now = NOW): FeedPorts {
  const journal = newJournal(openNodeSql(), { user_id: 'u1', created_at: 86_400_000 });
  const given: Partial<FeedPorts> = {
    journal,
    record: { ...SESSION_RECORD, user_id: 'u1', created_at: 86_400_000 },
    resolved: assistant(),
    clock: { now: () => now, schedule: () => () => undefined } as unknown as FeedPorts['clock'],
    random: () => 0.75,
    variables: new SessionVariables(journal),
    moment,
  };
  return given as FeedPorts;
}

const value = async (name: string, params: JsonObject = {}, given: FeedPorts = ports()): Promise<Json> =>
  (await fetchFeed(feed({ name, params }), given, new AbortController().signal)).value;

/** Platforms differ in writing UTC as an offset or as Z, and dates with a comma or without. */
const normal = (text: Json): Json =>
  typeof text === 'string' ? text.replace(/\+00:00$/, 'Z').replace(/^(\w+day),/, '$1') : text;

describe('[F5] the clock', () => {
  const texts: readonly (readonly [params: JsonObject, text: Json])[] = [
    [{}, '2026-03-29T00:30:00Z'],
    [{ format: 'ISO8601' }, '2026-03-29T00:30:00Z'],
    [{ timezone: 'Europe/Berlin' }, '2026-03-29T01:30:00+01:00'],
    [{ timezone: 'America/New_York' }, '2026-03-28T20:30:00-04:00'],
    [{ timezone: 'Asia/Kolkata' }, '2026-03-29T06:00:00+05:30'],
    [{ format: 'unix' }, 1_774_744_200],
    [{ format: 'human' }, 'Sunday 29 March 2026 at 00:30:00 UTC'],
    [{ format: 'human', timezone: 'Europe/Berlin' }, 'Sunday 29 March 2026 at 01:30:00 CET'],
  ];
  test.each(texts)('%j gives %j', async (params, text) => {
    expect(normal(await value('system_clock', params))).toBe(text);
  });

  test('shows midnight as hour 00', async () => {
    expect(normal(await value('system_clock', {}, ports(null, Date.UTC(2026, 0, 1))))).toBe('2026-01-01T00:00:00Z');
  });
});

describe('[F5] session sources', () => {
  test.each<[JsonObject, number]>([
    [{}, 0.75],
    [{ min: 10, max: 20 }, 17.5],
    [{ min: 10, max: 20, integer: true }, 17],
    [{ max: 4, integer: false }, 3],
    [{ min: -4 }, -0.25],
  ])('a random number with %j is %d', async (params, number) => {
    expect(await value('random', params)).toBe(number);
  });

  test('the session with its number of runs', async () => {
    const given = ports();
    given.journal.runs.create({}, 1, 'running');
    expect(await value('session_info', {}, given)).toEqual({
      session_id: SESSION_ID,
      user_id: 'u1',
      kind: 'chat',
      created_at: '1970-01-02T00:00:00.000Z',
      runs: 1,
    });
  });

  test('the agent of the session', async () => {
    const { name, version, summary, tags } = assistant().agent;
    expect(await value('agent_metadata')).toEqual({ name, version, summary, tags: [...tags] });
  });

  test('the current run; null between runs', async () => {
    const moment = { iteration: 3, usage: { tokens: 7 } };
    expect([await value('iteration', {}, ports(moment)), await value('iteration')]).toEqual([3, null]);
    expect([await value('usage', {}, ports(moment)), await value('usage')]).toEqual([{ tokens: 7 }, null]);
  });

  test('the latest actions, newest first, up to a limit, and the variables', async () => {
    const given = ports();
    given.journal.runs.create({}, 1, 'running');
    const head = { runId: runIdOf({ session_id: SESSION_ID }, 1), iteration: 1, at: 86_400_000 };
    for (let n = 0; n < limits.recentActions; n += 1) {
      given.journal.append({
        ...head,
        type: 'action_completed',
        actionId: `a${n}`,
        actionName: 'echo',
        data: { output: n, ms: 1, attempt: 1 },
      });
    }
    given.journal.append({ ...head, type: 'action_cancelled', data: { reason: 'user' } } as Parameters<
      typeof given.journal.append
    >[0]);
    given.variables.set('x', [1]);
    const actions = (await value('recent_actions', {}, given)) as JsonObject[];
    expect(actions).toHaveLength(limits.recentActions);
    expect(actions.slice(0, 2)).toEqual([
      { id: null, name: null, status: 'cancelled', at: '1970-01-02T00:00:00.000Z' },
      { id: `a${limits.recentActions - 1}`, name: 'echo', status: 'completed', at: '1970-01-02T00:00:00.000Z' },
    ]);
    expect(await value('variables', {}, given)).toEqual({ x: [1] });
  });

  test('an unknown source is refused by name', async () => {
    await expect(value('weather')).rejects.toThrow('"weather" is not an internal source');
  });
});

describe('[F1] an external source is fetched by its executor', () => {
  interface Asked {
    readonly call: ActionCall;
    readonly context: ActionContext;
  }

  /** Ports whose executors record their calls. */
  function asking(
    agent: string,
    more: Partial<FeedPorts> = {},
    outcome: ActionOutcome = { ok: true, output: 'fetched' },
  ): { readonly given: FeedPorts; readonly asked: Asked[]; readonly resolved: ResolvedAgent } {
    const resolved = bundled.agent(agent);
    if (resolved === null) throw new Error(`the bundled catalogue has no ${agent}`);
    const asked: Asked[] = [];
    const executor: Executor = {
      execute: async (call, context) => {
        asked.push({ call, context });
        return outcome;
      },
    };
    const executors = { tool: executor, relic: executor } as unknown as FeedPorts['executors'];
    const pacer = new Pacer(new ThreadShare(new FairQueue(new VirtualClock()), () => null));
    return { given: { ...ports(), resolved, executors, pacer, ...more }, asked, resolved };
  }

  const { signal } = new AbortController();
  const echo = { type: 'tool', name: 'echo', params: { text: 'hi' } } as const;

  test('a tool is called once with its parameters, under a separate runtime key', async () => {
    const { given, asked, resolved } = asking('assistant');
    expect(await fetchFeed(feed(echo), given, signal)).toEqual({ value: 'fetched' });
    expect(asked).toHaveLength(1);
    expect(asked[0]?.call).toMatchObject({
      action: { id: 'f', type: 'tool', mode: 'async', name: 'echo', parameters: { text: 'hi' } },
      runtimeKey: `${SESSION_ID}/feed/f/${NOW}`,
      attempt: 1,
      parameters: { text: 'hi' },
      inputs: {},
      tool: resolved.tools.get('echo'),
      relic: null,
      timeoutMs: limits.feedFetchMs,
      budget: null,
    });
  });

  test('only the name of a relic call contains an action', async () => {
    const { given, asked } = asking('assistant');
    await fetchFeed(feed({ ...echo, action: 'other' }), given, signal);
    expect(asked[0]?.call.action.name).toBe('echo');
  });

  test.each([
    [{}, { operation: 'status' }],
    [{ operation: 'other' }, { operation: 'other' }],
  ])('[F1] the action of a tool is its parameter operation: %j', async (params, expected) => {
    const { resolved } = asking('assistant');
    const tool = resolved.tools.get('echo');
    if (tool === undefined) throw new Error('the assistant has no echo');
    const parameters = { type: 'object', properties: { operation: { type: 'string' } }, required: ['operation'] };
    const tools = new Map([...resolved.tools, ['echo', { ...tool, parameters }] as const]);
    const { given, asked } = asking('assistant', { resolved: { ...resolved, tools } });
    await fetchFeed(feed({ ...echo, params, action: 'status' }), given, signal);
    expect(asked[0]?.call.parameters).toEqual(expected);
  });

  test('the context is that of an action without feeds, and progress is not shown', async () => {
    const edgeRelics = {} as NonNullable<FeedPorts['edgeRelics']>;
    const runner = {} as RunnerClient;
    const record = { ...SESSION_RECORD, owner: 'key1' };
    const { given, asked, resolved } = asking('assistant', { edgeRelics, runner, record });
    await fetchFeed(feed(echo), given, signal);
    const context = asked[0]?.context;
    expect(context).toMatchObject({ session: SESSION_ID, owner: 'key1', feeds: null, runnerNeeds: {} });
    expect(context?.signal).toBe(signal);
    expect(context?.edgeRelics).toBe(edgeRelics);
    expect(context?.runner).toBe(runner);
    expect(context?.variables).toBe(given.variables);
    expect(context?.internalActions).toBe(resolved.agent.internalActions);
    expect(context?.progress({ text: 'x' })).toBeUndefined();
    const needs = { level: 'strict' } as unknown as NonNullable<ResolvedAgent['agent']['runner']>;
    const other = asking('assistant', { resolved: { ...resolved, agent: { ...resolved.agent, runner: needs } } });
    await fetchFeed(feed(echo), other.given, signal);
    expect(other.asked[0]?.context).toMatchObject({ runnerNeeds: needs, edgeRelics: null });
  });

  test('[R6] a relic is called by its endpoint, with its definition', async () => {
    const { given, asked, resolved } = asking('notes_keeper');
    const tail = { type: 'relic', name: 'event_log', action: 'tail', params: { n: 1 } } as const;
    expect(await fetchFeed(feed(tail), given, signal)).toEqual({ value: 'fetched' });
    expect(asked[0]?.call).toMatchObject({
      action: { type: 'relic', name: 'event_log.tail', parameters: { n: 1 } },
      tool: null,
      relic: resolved.relics.get('event_log'),
    });
    expect(asked[0]?.call.relic).toBeDefined();
  });

  test('[M3] invalid parameters are rejected before the call', async () => {
    const { given, asked } = asking('assistant');
    const calculator = feed({ type: 'tool', name: 'calculator', params: { expr: '1' } });
    await expect(fetchFeed(calculator, given, signal)).rejects.toThrow('expression');
    expect(asked).toEqual([]);
  });

  test('a failure is reported with code and message', async () => {
    const error = { code: 'down', message: 'no answer', retryable: true };
    const { given } = asking('assistant', {}, { ok: false, error });
    await expect(fetchFeed(feed(echo), given, signal)).rejects.toThrow(/^down: no answer$/);
  });

  test('[X4] a source that the agent cannot use is not called', async () => {
    const { given, asked } = asking('assistant');
    await expect(fetchFeed(feed({ type: 'tool', name: 'launch_rockets' }), given, signal)).rejects.toThrow(
      'launch_rockets',
    );
    expect(asked).toEqual([]);
  });
});

describe('[X4] reasons to refuse a source', () => {
  /** An agent whose tools always require approval. */
  const asksFirst = (): ResolvedAgent => {
    const resolved = assistant();
    const tools = new Map([...resolved.tools].map(([name, tool]) => [name, { ...tool, approval: 'always' as const }]));
    return { ...resolved, tools };
  };

  test('a source that requires approval is refused by name', () => {
    const echo = feed({ type: 'tool', name: 'echo' });
    expect(feedRefusal(echo, assistant())).toBeNull();
    expect(feedRefusal(echo, asksFirst())).toBe('"echo" needs an approval and cannot be a feed');
  });

  test('an internal source is never refused, whatever the agent’s tools are', () => {
    expect(feedRefusal(feed({ name: 'random' }), { ...asksFirst(), tools: new Map() })).toBeNull();
  });
});
