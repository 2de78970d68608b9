/** The state of a session's feeds (F1-F4): fetches, values in prompts, and events for readers. */
import { describe, expect, test } from 'vitest';
// Loaded before a test's clock advances: the engine imports it when a model first changes a feed.
import '../../../src/catalog/schema/feed.ts';
import { bundled } from '../../support/bundled.ts';
import type { EventData } from '../../../src/domain/event.ts';
import type { Json } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { FeedDefinition } from '../../../src/domain/manifests/feed.ts';
import type { ResolvedAgent } from '../../../src/domain/manifests/resolved.ts';
import { feedStore, viewJson } from '../../../src/engine/feeds/feed-store.ts';
import { Feeds, NO_VALUE } from '../../../src/engine/feeds/feeds.ts';
import type { Fetched } from '../../../src/engine/feeds/feeds.ts';
import type { FeedReport } from '../../../src/protocol/prompt/chat-turn.ts';
import { Journal } from '../../../src/journal/journal.ts';
import { newJournal } from '../../journal/journal-kit.ts';
import { feedOf } from '../../support/definitions.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { openNodeSql } from '../../support/node-sql.ts';
import { settle } from '../../support/session-kit.ts';

const periodic = (id: string, intervalMs: number, more: Partial<FeedDefinition> = {}): FeedDefinition =>
  feedOf(id, { when: 'periodic', intervalMs, ...more });

function having(...feeds: readonly FeedDefinition[]): ResolvedAgent {
  const resolved = bundled.agent('assistant');
  if (resolved === null) throw new Error('the bundled catalogue has no assistant');
  return { ...resolved, agent: { ...resolved.agent, feeds } };
}

const { signal } = new AbortController();
type Issue = (feed: FeedDefinition) => string | null;
const allowAll: Issue = () => null;

/** Feeds whose source answers with the value of the moment, or fails with the error of the moment, or is silent. */
class World {
  readonly sql = openNodeSql();
  readonly clock = new VirtualClock();
  readonly told: EventData['context_feed_updated'][] = [];
  /** Ids of the fetched feeds, in order. */
  readonly fetched: string[] = [];
  value: Json = 'v1';
  error: string | null = null;
  silent = false;
  feeds = this.#host(newJournal(this.sql));

  #host(journal: Journal): Feeds {
    return new Feeds(journal, this.clock, limits.feedMinMs, (data) => this.told.push(data));
  }

  restart(): void {
    this.feeds = this.#host(new Journal(this.sql));
  }

  /** The model's access, without a first fetch. */
  store(resolved: ResolvedAgent, issue: Issue): ReturnType<typeof feedStore> {
    return feedStore({
      feeds: this.feeds,
      resolved,
      issueOf: async (one) => {
        const message = issue(one);
        return message === null ? null : { code: 'forbidden', message };
      },
      fetchFirst: async () => undefined,
    });
  }

  fetch = async ({ id }: FeedDefinition): Promise<Fetched> => {
    this.fetched.push(id);
    if (this.silent) return await new Promise(() => undefined);
    if (this.error !== null) throw new Error(this.error);
    return { value: this.value };
  };

  /** The feeds of a prompt; waits for the fetches. */
  async prompt(agent: ResolvedAgent): Promise<FeedReport[]> {
    const shown = this.feeds.current(agent, this.fetch, signal);
    await settle();
    this.clock.advance(this.silent ? limits.feedDeadlineMs : 0);
    return await shown;
  }
}

describe('[F2] a prompt fetches a feed', () => {
  test.each([
    ['at the end of its time to live', feedOf('f', { cacheTtlMs: 60_000 }), 60_000],
    ['when it is due again', periodic('f', 30_000), 30_000],
    ['when both have passed', periodic('f', 30_000, { cacheTtlMs: 90_000 }), 90_000],
    ['each time, without either', feedOf('f'), 0],
    ['each time, if only a periodic feed has an interval', feedOf('f', { intervalMs: 30_000 }), 0],
  ])('%s', async (_when, one, freshMs) => {
    const world = new World();
    await world.prompt(having(one));
    world.clock.advance(Math.max(0, freshMs - 1));
    await world.prompt(having(one));
    expect(world.fetched).toHaveLength(freshMs === 0 ? 2 : 1);
    world.clock.advance(1);
    await world.prompt(having(one));
    expect(world.fetched).toHaveLength(freshMs === 0 ? 3 : 2);
  });

  test('only if it is enabled, and shows no disabled feed', async () => {
    const world = new World();
    const agent = having(feedOf('off', { enabled: false, onError: 'use_default', defaultValue: 'd' }), feedOf('on'));
    expect(await world.prompt(agent)).toEqual([{ id: 'on', value: 'v1', ageMs: 0 }]);
    expect(world.fetched).toEqual(['on']);
    expect(world.feeds.list(agent).map(({ feed: { id } }) => id)).toEqual(['off', 'on']);
  });

  test('not after the session was closed for its deletion', async () => {
    const world = new World();
    world.feeds.close();
    await world.feeds.refresh(feedOf('f'), world.fetch);
    expect(world.fetched).toEqual([]);
  });

  test('without waiting for it after the run is aborted', async () => {
    const world = new World();
    world.silent = true;
    const abort = new AbortController();
    const shown = world.feeds.current(having(feedOf('f')), world.fetch, abort.signal);
    await settle();
    abort.abort();
    expect(await shown).toEqual([]);
  });
});

describe('[F2] the value of a feed in a prompt', () => {
  const cases: readonly (readonly [FeedDefinition['onError'], never: Json, failed: Json, late: Json])[] = [
    ['use_cached', 'nothing', 'v1, 10000 ms old', 'v1, 10000 ms old'],
    ['use_default', 'default, 0 ms old', 'default, 0 ms old', 'default, 0 ms old'],
    ['skip', 'nothing', 'nothing', 'nothing'],
  ];
  const show = ([report]: readonly FeedReport[]): string =>
    report === undefined ? 'nothing' : `${String(report.value)}, ${report.ageMs} ms old`;

  test.each(cases)('%s: without a value %s, with an older one %s', async (onError, never, failed, late) => {
    const one = feedOf('f', { onError, defaultValue: 'default' });
    const failing = new World();
    failing.error = 'down';
    expect(show(await failing.prompt(having(one)))).toBe(never);
    failing.error = null;
    expect(show(await failing.prompt(having(one)))).toBe('v1, 0 ms old');
    failing.error = 'down';
    failing.clock.advance(10_000);
    expect(show(await failing.prompt(having(one)))).toBe(failed);
    const slow = new World();
    await slow.prompt(having(one));
    slow.silent = true;
    slow.clock.advance(10_000 - limits.feedDeadlineMs);
    expect(show(await slow.prompt(having(one)))).toBe(late);
  });

  test('an age is never negative, even if the clock was set back', async () => {
    const world = new World();
    const agent = having(feedOf('f', { cacheTtlMs: 60_000 }));
    await world.prompt(agent);
    world.clock.advance(-5_000);
    expect(await world.prompt(agent)).toEqual([{ id: 'f', value: 'v1', ageMs: 0 }]);
  });

  test('[P12] its name refers to the latest value, otherwise to the default; other names are unknown', async () => {
    const world = new World();
    const agent = having(feedOf('f', { defaultValue: 'default' }), feedOf('g'));
    expect([world.feeds.value(agent, 'f'), world.feeds.value(agent, 'g'), world.feeds.value(agent, 'h')]).toEqual([
      'default',
      NO_VALUE,
      undefined,
    ]);
    world.error = 'down';
    await world.prompt(agent);
    expect(world.feeds.value(agent, 'f')).toBe('default');
    world.error = null;
    await world.prompt(agent);
    expect(world.feeds.value(agent, 'f')).toBe('v1');
  });
});

describe('[F2] a fetch', () => {
  test('ends with an error after its timeout; then the feed is fetched again', async () => {
    const world = new World();
    const agent = having(feedOf('f'));
    world.silent = true;
    await world.prompt(agent);
    await world.prompt(agent);
    expect(world.fetched).toEqual(['f']);
    world.clock.advance(limits.feedFetchMs - limits.feedDeadlineMs * 2 - 1);
    await settle();
    expect(world.feeds.list(agent)[0]?.error).toBeNull();
    world.clock.advance(limits.feedDeadlineMs + 1);
    await settle();
    expect(world.feeds.list(agent)[0]?.error).toBe('the feed did not answer within 60 s');
    world.silent = false;
    expect(await world.prompt(agent)).toMatchObject([{ id: 'f', value: 'v1' }]);
    // The timer of the second fetch has been cleared.
    expect(world.clock.next).toBeNull();
  });

  test('is shared by concurrent requests', async () => {
    const world = new World();
    const one = feedOf('f');
    await Promise.all([world.feeds.refresh(one, world.fetch), world.feeds.refresh(one, world.fetch)]);
    expect(world.fetched).toEqual(['f']);
    await world.feeds.refresh(one, world.fetch);
    expect(world.fetched).toEqual(['f', 'f']);
  });

  test('that was late can be waited for again after its answer', async () => {
    const world = new World();
    const agent = having(feedOf('f'));
    const gate = Promise.withResolvers<Json>();
    const shown = world.feeds.current(agent, async () => ({ value: await gate.promise }), signal);
    await settle();
    world.clock.advance(limits.feedDeadlineMs);
    expect(await shown).toEqual([]);
    gate.resolve('late');
    await settle();
    expect(world.feeds.value(agent, 'f')).toBe('late');
    expect(await world.prompt(agent)).toEqual([{ id: 'f', value: 'v1', ageMs: 0 }]);
  });

  test('readers get events for a new value, a new error, and the end of an error', async () => {
    const world = new World();
    const one = feedOf('f');
    const step = async (value: Json, error: string | null): Promise<void> => {
      world.value = value;
      world.error = error;
      await world.feeds.refresh(one, world.fetch);
    };
    await step({ n: 1 }, null);
    await step({ n: 1 }, null);
    await step({ n: 2 }, null);
    await step(null, 'down');
    await step(null, 'down');
    await step(null, 'lost');
    await step({ n: 2 }, null);
    expect(world.told).toEqual([
      { id: 'f', value: { n: 1 } },
      { id: 'f', value: { n: 2 } },
      { id: 'f', error: 'down' },
      { id: 'f', error: 'lost' },
      { id: 'f', value: { n: 2 } },
    ]);
    expect([world.feeds.refuse(one, 'suspended'), world.feeds.refuse(one, 'suspended')]).toEqual([true, false]);
  });

  test('[F4] a value past the size limit is cut as text; a value of exactly the limit is not', async () => {
    const world = new World();
    const agent = having(feedOf('f', { maxTokens: 5 }));
    const shows = async (value: Json): Promise<Json | undefined> => {
      world.value = value;
      return (await world.prompt(agent))[0]?.value;
    };
    expect(await shows('x'.repeat(20))).toBe('x'.repeat(20));
    expect(await shows('x'.repeat(21))).toBe(`${'x'.repeat(20)}\n[cut after 20 of 21 characters]`);
    const list = Array.from({ length: 9 }, () => 1);
    expect(await shows(list)).toEqual(list);
    expect(await shows([...list, 1])).toBe('[1,1,1,1,1,1,1,1,1,1\n[cut after 20 of 21 characters]');
  });

  test('[J2] the next host has the state of every feed', async () => {
    const world = new World();
    const agent = having(feedOf('f', { cacheTtlMs: 60_000 }));
    await world.prompt(agent);
    world.error = 'down';
    world.clock.advance(60_000);
    await world.prompt(agent);
    const before = world.feeds.list(agent);
    world.restart();
    expect(world.feeds.list(agent)).toEqual(before);
    expect(before).toMatchObject([{ value: 'v1', at: world.clock.now() - 60_000, error: 'down' }]);
  });
});

describe('[F3] due times of periodic feeds', () => {
  test('each feed has its own time, and the host wakes for the earliest', async () => {
    const world = new World();
    const agent = having(periodic('slow', 60_000), periodic('fast', 10_000), feedOf('never'));
    const ids = (): string[] => world.feeds.due(agent).now.map(({ id }) => id);
    expect(ids()).toEqual(['slow', 'fast']);
    // A feed that is due now is due again after its period.
    expect(world.feeds.due(agent).next).toBe(world.clock.now() + 10_000);
    await world.prompt(agent);
    expect([ids(), world.feeds.due(agent).next]).toEqual([[], world.clock.now() + 10_000]);
    world.clock.advance(9_999);
    expect([ids(), world.feeds.due(agent).next]).toEqual([[], world.clock.now() + 1]);
    world.clock.advance(1);
    expect(ids()).toEqual(['fast']);
  });

  test('a disabled feed is never due, nor is one that is fetched only for prompts', () => {
    const world = new World();
    const agent = having(periodic('off', 10_000, { enabled: false }), feedOf('f', { intervalMs: 10_000 }));
    expect(world.feeds.due(agent)).toEqual({ now: [], next: null });
  });

  test.each([null, 1_000])(
    'a periodic feed that was stored with the interval %j has the minimum period',
    async (ms) => {
      const world = new World();
      const agent = having(feedOf('f', { when: 'periodic', intervalMs: ms }));
      await world.prompt(agent);
      expect(world.feeds.due(agent)).toEqual({ now: [], next: world.clock.now() + world.feeds.minMs });
      expect(world.feeds.list(agent)[0]?.feed.intervalMs).toBe(limits.feedMinMs);
    },
  );

  test('of more than eight in an older definition, the first eight are due; a prompt has all', async () => {
    const world = new World();
    const feeds = Array.from({ length: 20 }, (_, at) => periodic(`f${at}`, 10_000));
    expect(world.feeds.due(having(...feeds)).now.map(({ id }) => id)).toEqual(
      feeds.slice(0, limits.periodicFeeds).map(({ id }) => id),
    );
    expect(await world.prompt(having(...feeds))).toHaveLength(20);
  });
});

describe('[I] feed actions of the model', () => {
  const added = { id: 'mine', type: 'tool', source: { name: 'echo', params: { n: 1 } } } as const;

  test('a feed is listed once, with its definition and its origin', async () => {
    const world = new World();
    const agent = having(feedOf('f', { defaultValue: 'd' }), periodic('p', 30_000, { onError: 'skip' }));
    const store = world.store(agent, allowAll);
    await store.add(added);
    const common = { cache_ttl: 0, max_tokens: 1_000, enabled: true, on_error: 'use_cached', error: null };
    const never = { value: null, updated_at: null };
    const echo = { type: 'tool', name: 'echo', params: {} };
    expect(store.list()).toEqual([
      { ...common, ...never, id: 'f', type: 'on_demand', source: echo, default: 'd', added_by_model: false },
      {
        ...common,
        ...never,
        id: 'p',
        type: 'periodic',
        interval: 30,
        source: echo,
        on_error: 'skip',
        added_by_model: false,
      },
      {
        ...common,
        ...never,
        id: 'mine',
        type: 'on_demand',
        source: { ...echo, params: { n: 1 } },
        added_by_model: true,
      },
    ]);
    await store.update('f', { max_tokens: 7, source: { type: 'relic', name: 'kv', action: 'get', params: {} } });
    expect(store.list().map(({ id }) => id)).toEqual(['f', 'p', 'mine']);
    expect(store.list()[0]).toMatchObject({
      max_tokens: 7,
      source: { type: 'relic', name: 'kv', action: 'get' },
      added_by_model: true,
    });
    expect(world.feeds.list(agent).map(viewJson)).toEqual(store.list());
  });

  test('an update keeps the value of the same source, and drops the value of another', async () => {
    const world = new World();
    const agent = having(feedOf('f'));
    const store = world.store(agent, allowAll);
    await world.prompt(agent);
    world.error = 'down';
    await world.prompt(agent);
    const at = world.clock.now();
    expect(await store.update('f', { max_tokens: 7 })).toMatchObject({ id: 'f', max_tokens: 7 });
    // The error belongs to the previous definition.
    expect(store.list()).toMatchObject([{ value: 'v1', updated_at: at, error: null }]);
    await store.update('f', { source: { type: 'tool', name: 'echo', params: { other: true } } });
    expect(store.list()).toMatchObject([{ value: null, updated_at: null, error: null }]);
    expect(world.told.slice(-2)).toEqual([
      { id: 'f', updated: true },
      { id: 'f', updated: true },
    ]);
  });

  test('a removed feed of the manifest stays removed, until the model adds one with its name', async () => {
    const world = new World();
    const agent = having(feedOf('mine'));
    const store = world.store(agent, allowAll);
    await world.prompt(agent);
    expect(store.remove('mine')).toBe(true);
    expect([store.list(), world.feeds.value(agent, 'mine')]).toEqual([[], undefined]);
    // A late value is ignored.
    await world.feeds.refresh(feedOf('mine'), world.fetch);
    expect(world.told).toEqual([
      { id: 'mine', value: 'v1' },
      { id: 'mine', removed: true },
    ]);
    world.restart();
    expect(world.feeds.list(agent)).toEqual([]);
    await world.store(agent, allowAll).add(added);
    expect(world.feeds.list(agent)).toMatchObject([{ addedByModel: true, value: null }]);
  });

  test('an invalid change is refused with a clear message, and changes nothing', async () => {
    const world = new World();
    const agent = having(feedOf('f'), feedOf('g'));
    const store = world.store(agent, ({ source }) => (source.name === 'secret' ? 'not this one' : null));
    const refused = async (made: () => Promise<unknown>, code: string, message: string): Promise<void> =>
      await expect(made()).rejects.toMatchObject({ code, message });
    await refused(async () => await store.add({ ...added, source: { name: 'secret' } }), 'forbidden', 'not this one');
    await refused(
      async () => await store.add({ ...added, id: 'f' }),
      'invalid_request',
      'The feed "f" already exists: update or remove it',
    );
    await expect(store.add({ id: 'x' })).rejects.toMatchObject({ code: 'invalid_request' });
    const long = 'z'.repeat(limits.excerptChars + 1);
    await refused(
      async () => await store.update(long, {}),
      'invalid_request',
      `There is no feed "${long.slice(0, limits.excerptChars)}" (known: f, g)`,
    );
    const empty = world.store(having(), allowAll);
    await refused(async () => empty.remove('f'), 'invalid_request', 'There is no feed "f" (known: none)');
    expect(world.told).toEqual([]);
  });

  test('a session has a maximum number of feeds', async () => {
    const world = new World();
    const feeds = Array.from({ length: limits.feeds - 1 }, (_, n) => feedOf(`f${n}`));
    const store = world.store(having(...feeds), allowAll);
    await store.add(added);
    await expect(store.add({ ...added, id: 'more' })).rejects.toMatchObject({
      code: 'invalid_request',
      message: `A session may have at most ${limits.feeds} feeds`,
    });
  });

  test('an added feed ignores the fetches of an earlier feed with its name', async () => {
    const world = new World();
    const agent = having(feedOf('mine'));
    const store = world.store(agent, allowAll);
    const gate = Promise.withResolvers<Json>();
    const before = world.feeds.refresh(feedOf('mine'), async () => ({ value: await gate.promise }));
    store.remove('mine');
    await store.add(added);
    const fresh = world.feeds.refresh(world.feeds.list(agent)[0]?.feed ?? feedOf('none'), world.fetch);
    gate.resolve('old');
    await Promise.all([before, fresh]);
    expect(world.feeds.value(agent, 'mine')).toBe('v1');
    expect(world.fetched).toEqual(['mine']);
  });
});
