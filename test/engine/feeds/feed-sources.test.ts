/** What feeds show of the session itself (F5), and why a source is refused. */
import { describe, expect, test } from 'vitest';
import { bundled } from '../../../src/catalog/bundled.ts';
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { FeedDefinition, FeedSource, ResolvedAgent } from '../../../src/domain/manifest.ts';
import { fetchFeed } from '../../../src/engine/feeds/feed-sources.ts';
import type { FeedPorts } from '../../../src/engine/feeds/feed-sources.ts';
import { SessionVariables } from '../../../src/engine/session/session-variables.ts';
import { runIdOf } from '../../../src/journal/run-id.ts';
import { newJournal, SESSION_ID, SESSION_RECORD } from '../../journal/journal-kit.ts';
import { openNodeSql } from '../../support/node-sql.ts';

const assistant = (): ResolvedAgent => {
  const resolved = bundled.agent('assistant');
  if (resolved === null) throw new Error('the bundled catalogue has no assistant');
  return resolved;
};

/** 2026-03-29T00:30:00.500Z, half an hour before the clocks of Berlin change. */
const NOW = Date.UTC(2026, 2, 29, 0, 30, 0, 500);

function feed(source: Partial<FeedSource>): FeedDefinition {
  return {
    id: 'f',
    when: 'on_demand',
    intervalMs: null,
    cacheTtlMs: 0,
    maxTokens: 1_000,
    enabled: true,
    source: { type: 'internal', name: 'system_clock', action: null, params: {}, ...source },
    onError: 'use_cached',
    defaultValue: null,
  };
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
  await fetchFeed(feed({ name, params }), given, new AbortController().signal);

/** Platforms write UTC as an offset or as Z, and dates with a comma or without. */
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
  test.each(texts)('%j is %j', async (params, text) => {
    expect(normal(await value('system_clock', params))).toBe(text);
  });

  test('midnight is the hour 00', async () => {
    expect(normal(await value('system_clock', {}, ports(null, Date.UTC(2026, 0, 1))))).toBe('2026-01-01T00:00:00Z');
  });
});

describe('[F5] the session', () => {
  test.each<[JsonObject, number]>([
    [{}, 0.75],
    [{ min: 10, max: 20 }, 17.5],
    [{ min: 10, max: 20, integer: true }, 17],
    [{ max: 4, integer: false }, 3],
    [{ min: -4 }, -0.25],
  ])('a random number of %j is %d', async (params, number) => {
    expect(await value('random', params)).toBe(number);
  });

  test('what it is, and how many runs it has had', async () => {
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

  test('its agent', async () => {
    const { name, version, summary, tags } = assistant().agent;
    expect(await value('agent_metadata')).toEqual({ name, version, summary, tags: [...tags] });
  });

  test('the run that asks; between runs nothing', async () => {
    const moment = { iteration: 3, usage: { tokens: 7 } };
    expect([await value('iteration', {}, ports(moment)), await value('iteration')]).toEqual([3, null]);
    expect([await value('usage', {}, ports(moment)), await value('usage')]).toEqual([{ tokens: 7 }, null]);
  });

  test('its latest actions, newest first, at most so many, and its variables', async () => {
    const given = ports();
    const head = { runId: runIdOf(SESSION_ID, 1), iteration: 1, at: 86_400_000 };
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

  test('what is no source of it is refused by name', async () => {
    await expect(value('weather')).rejects.toThrow('"weather" is not an internal source');
  });
});

test('[X4] a source that the agent may not use is not asked', async () => {
  const signal = new AbortController().signal;
  await expect(fetchFeed(feed({ type: 'tool', name: 'launch_rockets' }), ports(), signal)).rejects.toThrow(
    'launch_rockets',
  );
});
