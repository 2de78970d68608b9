/**
 * A session's context feeds: values that are kept current for the prompt (F1-F4).
 *
 * Owns the latest value of each feed, what the model has added and changed, and what is being fetched.
 * Does not own where values come from, nor the alarm that wakes the host.
 *
 * Invariants:
 *  1. At most one fetch of a feed's source is waited for; whoever needs its value joins it. What comes from a source
 *     that the feed has no longer is dropped.
 *  2. A prompt waits for its feeds at most `limits.feedDeadlineMs`, and for one that has missed its
 *     deadline not again until it has answered: until then its cached or default value stands.
 *  3. Values are cut to the feed's size when they come in, with a visible marker (F4).
 *  4. Everything that is known survives the host.
 *  5. The clock refreshes at most `limits.periodicFeeds` feeds, none of them more often than the least period; what an
 *     older definition says beyond that is refreshed with the prompt, or at the least period (F3).
 */
import { EngineError, messageOf } from '../../domain/errors.ts';
import type { EventData } from '../../domain/event.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { FeedDefinition, ResolvedAgent } from '../../domain/manifest.ts';
import type { Clock, FeedStore } from '../../domain/ports.ts';
import type { Journal } from '../../journal/journal.ts';
import type { FeedReport } from '../../protocol/prompt/chat-turn.ts';

/** What is known of a feed beside its definition. */
interface Known {
  /** Of the model's making; null where the manifest's stands. */
  readonly definition: FeedDefinition | null;
  readonly removed: boolean;
  readonly value: Json;
  /** When the value came, epoch milliseconds; null when none ever has. */
  readonly at: number | null;
  /** Why the latest fetch failed; null when it did not. */
  readonly error: string | null;
}

const NOTHING: Known = { definition: null, removed: false, value: null, at: null, error: null };

/** Fetches a feed's value. Rejects with what went wrong. */
export type FetchFeed = (feed: FeedDefinition, signal: AbortSignal) => Promise<Json>;

export interface FeedView {
  readonly feed: FeedDefinition;
  readonly addedByModel: boolean;
  readonly value: Json;
  readonly at: number | null;
  readonly error: string | null;
}

export class Feeds {
  readonly #journal: Journal;
  readonly #clock: Clock;
  readonly #minMs: number;
  /** Told of every change: for the event that readers see. */
  readonly #changed: (data: EventData['context_feed_updated']) => void;
  #known: Map<string, Known> | null = null;
  readonly #fetching = new Map<string, Promise<void>>();
  /** Feeds that missed a deadline and have not answered since. */
  readonly #late = new Set<string>();

  /** @param minMs least period of a periodic feed */
  constructor(
    journal: Journal,
    clock: Clock,
    minMs: number,
    changed: (data: EventData['context_feed_updated']) => void,
  ) {
    this.#journal = journal;
    this.#clock = clock;
    this.#minMs = minMs;
    this.#changed = changed;
  }

  /** The agent's feeds with the model's changes, no period below the least one. */
  list({ agent }: ResolvedAgent): FeedView[] {
    const known = this.#all();
    const ids = new Set([...agent.feeds.map(({ id }) => id), ...known.keys()]);
    return [...ids].flatMap((id) => {
      const { definition, removed, value, at, error } = known.get(id) ?? NOTHING;
      const written = definition ?? agent.feeds.find((one) => one.id === id);
      if (written === undefined || removed) return [];
      return [{ feed: withLeastPeriod(written, this.#minMs), addedByModel: definition !== null, value, at, error }];
    });
  }

  /** What `$id` stands for: the latest value, else the default; undefined when there is no such feed (P12). */
  value(resolved: ResolvedAgent, id: string): Json | undefined {
    const found = this.list(resolved).find(({ feed }) => feed.id === id);
    if (found === undefined) return undefined;
    return found.at === null ? found.feed.defaultValue : found.value;
  }

  /** The feeds of one prompt, refreshed where they are stale, within the deadline (F2). */
  async gather(resolved: ResolvedAgent, fetch: FetchFeed, signal: AbortSignal): Promise<FeedReport[]> {
    const now = this.#clock.now();
    const stale = this.list(resolved).filter(({ feed, at }) => feed.enabled && !isFresh(feed, at, now));
    const awaited = stale.filter(({ feed }) => !this.#late.has(feed.id)).map(({ feed }) => this.refresh(feed, fetch));
    if (awaited.length > 0) {
      const inTime = await this.#within(Promise.all(awaited), limits.feedDeadlineMs, signal);
      if (!inTime) for (const { feed } of stale) if (this.#fetching.has(feed.id)) this.#late.add(feed.id);
    }
    return this.list(resolved).flatMap((view) => this.#report(view));
  }

  #report({ feed, value, at, error }: FeedView): FeedReport[] {
    if (!feed.enabled) return [];
    const now = this.#clock.now();
    const stale = error !== null || this.#late.has(feed.id) || at === null;
    if (stale && feed.onError === 'skip') return [];
    if (at === null || (stale && feed.onError === 'use_default')) {
      return feed.onError === 'use_default' ? [{ id: feed.id, value: feed.defaultValue, ageMs: 0 }] : [];
    }
    return [{ id: feed.id, value, ageMs: Math.max(0, now - at) }];
  }

  /** Fetches a feed now, or joins the fetch that is under way. Never rejects: what failed is remembered. */
  refresh(feed: FeedDefinition, fetch: FetchFeed): Promise<void> {
    const underWay = this.#fetching.get(feed.id);
    if (underWay !== undefined) return underWay;
    const abort = new AbortController();
    const giveUp = this.#clock.schedule(limits.feedFetchMs, () =>
      abort.abort(new Error(`the feed did not answer within ${limits.feedFetchMs / 1_000} s`)),
    );
    const aborted = new Promise<never>((_resolve, reject) => {
      abort.signal.addEventListener('abort', () => reject(abort.signal.reason as Error));
    });
    const fetching = Promise.race([fetch(feed, abort.signal), aborted])
      .then(
        (value) => this.#came(feed, value),
        (fault: unknown) => void this.#failed(feed, messageOf(fault)),
      )
      .finally(() => {
        giveUp();
        if (this.#fetching.get(feed.id) === fetching) this.#letGo(feed.id);
      });
    this.#fetching.set(feed.id, fetching);
    return fetching;
  }

  /** Nobody waits for the fetch under way any more: it is over, or of a source that the feed has no longer. */
  #letGo(id: string): void {
    this.#fetching.delete(id);
    this.#late.delete(id);
  }

  /** Periodic feeds whose time has come, and when the next one's comes; null when there is none (F3). */
  due(resolved: ResolvedAgent): { readonly now: readonly FeedDefinition[]; readonly next: number | null } {
    const now = this.#clock.now();
    const periodic = this.list(resolved)
      .filter(({ feed }) => feed.enabled && feed.when === 'periodic')
      .slice(0, limits.periodicFeeds);
    const times = periodic.map(({ feed, at }) => ({ feed, at: (at ?? 0) + (feed.intervalMs ?? 0) }));
    const due = times.filter(({ at }) => at <= now).map(({ feed }) => feed);
    const later = times.map(({ feed, at }) => (at <= now ? now + (feed.intervalMs ?? 0) : at));
    return { now: due, next: later.length === 0 ? null : Math.min(...later) };
  }

  /** The model's own hands on its feeds; `allowed` refuses sources that the agent may not use. */
  store(resolved: ResolvedAgent, allowed: (feed: FeedDefinition) => string | null): FeedStore {
    const accept = async (written: JsonObject): Promise<FeedDefinition> => {
      // What checks manifests is loaded where it is needed: a Worker starts without it.
      const { readFeed } = await import('../../catalog/schema/feed.ts');
      const read = readFeed(written, this.#minMs);
      if ('faults' in read) throw new EngineError('invalid_request', read.faults.join('; '));
      const refusal = allowed(read.feed);
      if (refusal !== null) throw new EngineError('forbidden', refusal);
      return read.feed;
    };
    const find = (id: string): FeedView => {
      const views = this.list(resolved);
      const found = views.find(({ feed }) => feed.id === id);
      if (found !== undefined) return found;
      const known = views.map(({ feed }) => feed.id).join(', ') || 'none';
      throw new EngineError(
        'invalid_request',
        `There is no feed "${id.slice(0, limits.excerptChars)}" (known: ${known})`,
      );
    };
    const refuseTooManyPeriodic = (feed: FeedDefinition): void => {
      const others = this.list(resolved).filter((view) => view.feed.when === 'periodic' && view.feed.id !== feed.id);
      if (feed.when !== 'periodic' || others.length < limits.periodicFeeds) return;
      const ids = others.map((view) => view.feed.id).join(', ');
      throw new EngineError(
        'invalid_request',
        `A session holds at most ${limits.periodicFeeds} periodic feeds, and there are ${others.length}: ${ids}`,
      );
    };
    return {
      list: () => this.list(resolved).map(viewJson),
      add: async (written) => {
        const feed = await accept(written);
        const views = this.list(resolved);
        if (views.some((view) => view.feed.id === feed.id)) {
          throw new EngineError('invalid_request', `There is a feed "${feed.id}" already: update or remove it`);
        }
        if (views.length >= limits.feeds) {
          throw new EngineError('invalid_request', `A session holds at most ${limits.feeds} feeds`);
        }
        refuseTooManyPeriodic(feed);
        this.#letGo(feed.id);
        this.#keep(feed.id, { ...NOTHING, definition: feed });
        this.#changed({ id: feed.id, added: true });
        return feedJson(feed);
      },
      update: async (id, changes) => {
        const { feed } = find(id);
        const updated = await accept({ ...feedJson(feed), ...changes, id });
        if (feed.when !== 'periodic') refuseTooManyPeriodic(updated);
        // Another source has another value; until it comes there is none.
        const { value, at } = this.#all().get(id) ?? NOTHING;
        const same = isSameSource(updated, feed);
        if (!same) this.#letGo(id);
        this.#keep(id, { ...NOTHING, definition: updated, ...(same ? { value, at } : {}) });
        this.#changed({ id, updated: true });
        return feedJson(updated);
      },
      remove: (id) => {
        find(id);
        this.#keep(id, { ...NOTHING, removed: true });
        this.#changed({ id, removed: true });
        return true;
      },
    };
  }

  /** What is known of the feed that was fetched; null when it has been removed or given another source meanwhile. */
  #awaiting(feed: FeedDefinition): Known | null {
    const known = this.#all().get(feed.id) ?? NOTHING;
    const other = known.definition !== null && !isSameSource(known.definition, feed);
    return known.removed || other ? null : known;
  }

  #came(feed: FeedDefinition, value: Json): void {
    const before = this.#awaiting(feed);
    if (before === null) return;
    const cut = cutTo(value, feed.maxTokens * 4);
    this.#keep(feed.id, { ...before, value: cut, at: this.#clock.now(), error: null });
    if (before.at === null || before.error !== null || JSON.stringify(before.value) !== JSON.stringify(cut)) {
      this.#changed({ id: feed.id, value: cut });
    }
  }

  /** A feed that is not fetched, and why. @returns whether that is new */
  refuse(feed: FeedDefinition, error: string): boolean {
    return this.#failed(feed, error);
  }

  #failed(feed: FeedDefinition, error: string): boolean {
    const before = this.#awaiting(feed);
    if (before === null || before.error === error) return false;
    this.#keep(feed.id, { ...before, error });
    this.#changed({ id: feed.id, error });
    return true;
  }

  #all(): Map<string, Known> {
    this.#known ??= new Map([...this.#journal.feeds()].map(([id, data]) => [id, data as unknown as Known]));
    return this.#known;
  }

  #keep(id: string, known: Known): void {
    this.#all().set(id, known);
    this.#journal.setFeed(id, known as unknown as Json);
  }

  /** Whether `work` was done within `ms`. */
  async #within(work: Promise<unknown>, ms: number, signal: AbortSignal): Promise<boolean> {
    return await new Promise<boolean>((resolve) => {
      const cancel = this.#clock.schedule(ms, () => resolve(false));
      const done = (inTime: boolean) => () => {
        cancel();
        resolve(inTime);
      };
      signal.addEventListener('abort', done(false), { once: true });
      work.then(done(true), done(false));
    });
  }
}

function isFresh({ cacheTtlMs, when, intervalMs }: FeedDefinition, at: number | null, now: number): boolean {
  // What the clock refreshes is fresh until it is due again.
  return at !== null && now - at < Math.max(cacheTtlMs, when === 'periodic' ? (intervalMs ?? 0) : 0);
}

function withLeastPeriod(feed: FeedDefinition, minMs: number): FeedDefinition {
  return feed.intervalMs === null || feed.intervalMs >= minMs ? feed : { ...feed, intervalMs: minMs };
}

function isSameSource(one: FeedDefinition, other: FeedDefinition): boolean {
  return JSON.stringify(one.source) === JSON.stringify(other.source);
}

/** A value whose text has at most so many characters, cut where it is longer (F4). */
function cutTo(value: Json, maxChars: number): Json {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  if (text.length <= maxChars) return value;
  return `${text.slice(0, maxChars).toWellFormed()}\n[cut after ${maxChars} of ${text.length} characters]`;
}

/** As `add_context_feed` takes it. */
function feedJson(feed: FeedDefinition): JsonObject {
  const { type, name, action, params } = feed.source;
  return {
    id: feed.id,
    type: feed.when,
    ...(feed.intervalMs === null ? {} : { interval: feed.intervalMs / 1_000 }),
    cache_ttl: feed.cacheTtlMs / 1_000,
    max_tokens: feed.maxTokens,
    enabled: feed.enabled,
    source: { type, name, ...(action === null ? {} : { action }), ...(isJsonObject(params) ? { params } : {}) },
    on_error: feed.onError,
    ...(feed.defaultValue === null ? {} : { default: feed.defaultValue }),
  };
}

export function viewJson({ feed, addedByModel, value, at, error }: FeedView): JsonObject {
  return { ...feedJson(feed), added_by_model: addedByModel, value, updated_at: at, error };
}
