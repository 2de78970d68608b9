/**
 * A session's context feeds: values that are kept current for the prompt (F1-F4).
 *
 * Owns the latest value of each feed, the model's additions and changes, and pending fetches. Does not own the sources
 * of values, or the alarm that wakes the host.
 *
 * Invariants:
 *  1. At most one fetch per source is pending; every caller joins it. The result of a fetch is dropped if the feed has
 *     another source by then.
 *  2. A prompt waits for its feeds at most `limits.feedDeadlineMs`. It does not wait again for a feed that has missed
 *     its deadline until that feed has answered; its cached or default value is used.
 *  3. New values are cut to the feed's size, with a visible marker (F4).
 *  4. The whole state survives the host.
 *  5. At most `limits.periodicFeeds` feeds are refreshed by timer, and none more often than the minimum period. Older
 *     definitions beyond that are refreshed with the prompt, or at the minimum period (F3).
 */
import { messageOf } from '../../domain/errors.ts';
import type { EventData } from '../../domain/event.ts';
import { MEMORY_SOURCE } from '../../domain/facts.ts';
import type { Json } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { FeedDefinition } from '../../domain/manifests/feed.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { SharedFeedValue } from '../../domain/ports/shared-values.ts';
import type { Journal } from '../../journal/journal.ts';
import type { FeedReport } from '../../protocol/prompt/chat-turn.ts';

/** The state of a feed in addition to its definition. */
interface Known {
  /** The model's definition; null if the manifest's applies. */
  readonly definition: FeedDefinition | null;
  readonly removed: boolean;
  readonly value: Json;
  /** When the value was fetched, epoch milliseconds; null if never. */
  readonly at: number | null;
  /** Why the latest fetch failed; null if it succeeded. */
  readonly error: string | null;
}

/** An enabled feed has no value to show. */
export const NO_VALUE = Symbol('no value');

const NOTHING: Known = { definition: null, removed: false, value: null, at: null, error: null };

/**
 * The result of a fetch. `shared`: it was read from a shared feed, which has cut it and knows its time (F6). `version`: of a
 * value that the session changes as well; an older version never replaces a newer one (C10).
 */
export interface Fetched {
  readonly value: Json;
  readonly version?: number;
  readonly shared?: Omit<SharedFeedValue, 'value'>;
}

/** Fetches a feed's value. Rejects with the error. */
export type FetchFeed = (feed: FeedDefinition, signal: AbortSignal) => Promise<Fetched>;

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
  /** Called for every change, to create the event for readers. */
  readonly #changed: (data: EventData['context_feed_updated']) => void;
  #known: Map<string, Known> | null = null;
  readonly #fetching = new Map<string, Promise<void>>();
  /** Feeds that missed a deadline and have not answered since. */
  readonly #late = new Set<string>();
  /** Feeds whose value is fetched again, however old it is; until then, they have none. */
  readonly #expired = new Set<string>();
  /** Versions of the values of this host. */
  readonly #versions = new Map<string, number>();
  #isClosed = false;

  /** @param minMs minimum period of a periodic feed */
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

  /** The agent's feeds with the model's changes; periods are raised to the minimum. */
  list({ agent }: ResolvedAgent): FeedView[] {
    const known = this.#all();
    const ids = new Set([...agent.feeds.map(({ id }) => id), ...known.keys()]);
    return [...ids].flatMap((id) => {
      const own = agent.feeds.find((one) => one.id === id);
      const { value, at, error, ...changed } = known.get(id) ?? NOTHING;
      const { definition, removed } = own !== undefined && isMemoryFeed(own) ? NOTHING : changed;
      const written = definition ?? own;
      if (written === undefined || removed) return [];
      return [{ feed: withLeastPeriod(written, this.#minMs), addedByModel: definition !== null, value, at, error }];
    });
  }

  /** Whether the session has no feeds. */
  isEmpty({ agent }: ResolvedAgent): boolean {
    return agent.feeds.length === 0 && this.#all().size === 0;
  }

  /** The feed with this id; undefined if there is none. */
  find(resolved: ResolvedAgent, id: string): FeedView | undefined {
    return this.list(resolved).find(({ feed }) => feed.id === id);
  }

  /**
   * The value of `$id`: the latest value, else the default; undefined if there is no such feed (P12). `NO_VALUE`: the
   * feed is enabled, but it has neither.
   */
  value(resolved: ResolvedAgent, id: string): Json | typeof NO_VALUE | undefined {
    const found = this.find(resolved, id);
    if (found === undefined) return undefined;
    const { feed, value, at } = found;
    if (at !== null && !this.#expired.has(id)) return value;
    const hasDefault = feed.defaultValue !== null || feed.onError === 'use_default';
    return hasDefault || !feed.enabled ? feed.defaultValue : NO_VALUE;
  }

  /** Fetches feeds outside of a prompt, in parallel. Resolves when all have answered, or after `ms`. */
  async fetchNow(feeds: readonly FeedDefinition[], fetch: FetchFeed, ms: number, signal: AbortSignal): Promise<void> {
    await this.#finishesWithin(Promise.all(feeds.map((feed) => this.refresh(feed, fetch))), ms, signal);
  }

  /** Whether the value was fetched at or after a time, and is still fresh if it has a time to live. */
  isCurrent({ feed, at }: FeedView, since: number): boolean {
    if (at === null || this.#expired.has(feed.id)) return false;
    const freshForMs = freshMs(feed);
    return this.#clock.now() - at < freshForMs || (freshForMs === 0 && at >= since);
  }

  /** The feeds of one prompt; stale ones are refreshed, within the deadline (F2). */
  async current(resolved: ResolvedAgent, fetch: FetchFeed, signal: AbortSignal): Promise<FeedReport[]> {
    const stale = this.#stale(resolved);
    const awaited = stale.filter(({ feed }) => !this.#late.has(feed.id)).map(({ feed }) => this.refresh(feed, fetch));
    if (awaited.length > 0) {
      const inTime = await this.#finishesWithin(Promise.all(awaited), limits.feedDeadlineMs, signal);
      if (!inTime) for (const { feed } of stale) if (this.#fetching.has(feed.id)) this.#late.add(feed.id);
    }
    return this.list(resolved).flatMap((view) => this.#report(view));
  }

  /** Whether `current` fetches nothing. */
  areFresh(resolved: ResolvedAgent): boolean {
    return this.#stale(resolved).length === 0;
  }

  #stale(resolved: ResolvedAgent): FeedView[] {
    const now = this.#clock.now();
    const isStale = ({ feed, at }: FeedView): boolean => this.#expired.has(feed.id) || !isFresh(feed, at, now);
    return this.list(resolved).filter((view) => view.feed.enabled && isStale(view));
  }

  #report({ feed, value, at, error }: FeedView): FeedReport[] {
    if (!feed.enabled) return [];
    const now = this.#clock.now();
    const stale = error !== null || this.#late.has(feed.id) || at === null || this.#expired.has(feed.id);
    if (stale && feed.onError === 'skip') return [];
    if (at === null || (stale && feed.onError === 'use_default')) {
      return feed.onError === 'use_default' ? [{ id: feed.id, value: feed.defaultValue, ageMs: 0 }] : [];
    }
    return [{ id: feed.id, value, ageMs: Math.max(0, now - at) }];
  }

  /** Fetches a feed now, or joins a pending fetch. Never rejects: an error is stored. */
  refresh(feed: FeedDefinition, fetch: FetchFeed): Promise<void> {
    const underWay = this.#fetching.get(feed.id);
    if (underWay !== undefined) return underWay;
    // The session was deleted while the refresh was admitted.
    if (this.#isClosed) return Promise.resolve();
    const abort = new AbortController();
    const giveUp = this.#clock.schedule(limits.feedFetchMs, () =>
      abort.abort(new Error(`the feed did not answer within ${limits.feedFetchMs / 1_000} s`)),
    );
    const aborted = new Promise<never>((_resolve, reject) => {
      abort.signal.addEventListener('abort', () => reject(abort.signal.reason as Error));
    });
    const fetching = Promise.race([fetch(feed, abort.signal), aborted])
      .then(
        (fetched) => this.#take(feed, fetched),
        (fault: unknown) => void this.#failed(feed, messageOf(fault)),
      )
      .finally(() => {
        giveUp();
        if (this.#fetching.get(feed.id) === fetching) this.#detach(feed.id);
      });
    this.#fetching.set(feed.id, fetching);
    return fetching;
  }

  /** A run has begun that must not use the value of an earlier one: the value is fetched when it is needed (C10). */
  expire(id: string): void {
    this.#expired.add(id);
  }

  /** A change by the session itself, with the whole value. Its own event tells readers. */
  put(feed: FeedDefinition, value: Json, version: number): void {
    const before = this.#stateOf(feed);
    if (before === null || !this.#isNewest(feed.id, version)) return;
    // Of a pending fetch, only a newer version counts.
    this.#detach(feed.id);
    this.#keep(feed.id, { ...before, value: cutValue(value, charsOf(feed)), at: this.#clock.now(), error: null });
    this.#expired.delete(feed.id);
  }

  #isNewest(id: string, version: number | undefined): boolean {
    if (version === undefined) return true;
    if (version < (this.#versions.get(id) ?? 0)) return false;
    this.#versions.set(id, version);
    return true;
  }

  /** Detaches a pending fetch: it has ended, or the feed has another source. */
  #detach(id: string): void {
    this.#fetching.delete(id);
    this.#late.delete(id);
  }

  /** Periodic feeds that are due, and the time of the next one; null if there is none (F3). */
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

  /** Adds a feed of the model, or replaces a feed's definition. @param keepsValue the source is the same */
  define(feed: FeedDefinition, keepsValue: boolean): void {
    const { value, at } = this.#all().get(feed.id) ?? NOTHING;
    if (!keepsValue) this.#detach(feed.id);
    this.#keep(feed.id, { ...NOTHING, definition: feed, ...(keepsValue ? { value, at } : {}) });
  }

  remove(id: string): void {
    this.#keep(id, { ...NOTHING, removed: true });
    this.#changed({ id, removed: true });
  }

  /** Tells readers about a change of a definition. */
  announce(data: EventData['context_feed_updated']): void {
    this.#changed(data);
  }

  /** Minimum period of a periodic feed. */
  get minMs(): number {
    return this.#minMs;
  }

  /** The session is about to be deleted: results of pending fetches are dropped. */
  close(): void {
    this.#isClosed = true;
  }

  /** The state of the fetched feed; null if its result is dropped: it was removed, or given another source. */
  #stateOf(feed: FeedDefinition): Known | null {
    if (this.#isClosed) return null;
    const known = this.#all().get(feed.id) ?? NOTHING;
    const other = known.definition !== null && !isSameSource(known.definition, feed);
    return known.removed || other ? null : known;
  }

  #take(feed: FeedDefinition, { value, shared, version }: Fetched): void {
    if (shared !== undefined) this.#read(feed, { value, ...shared });
    else if (this.#isNewest(feed.id, version)) this.#fetched(feed, value);
  }

  #fetched(feed: FeedDefinition, value: Json): void {
    const before = this.#stateOf(feed);
    if (before === null) return;
    const cut = cutValue(value, charsOf(feed));
    this.#keep(feed.id, { ...before, value: cut, at: this.#clock.now(), error: null });
    this.#expired.delete(feed.id);
    if (before.at === null || before.error !== null || JSON.stringify(before.value) !== JSON.stringify(cut)) {
      this.#changed({ id: feed.id, value: cut });
    }
  }

  /** Takes over the state of a shared feed: its value keeps its age, and an error leaves the value (F6). */
  #read(feed: FeedDefinition, { value, at, error }: SharedFeedValue): void {
    const before = this.#stateOf(feed);
    if (before === null) return;
    const isNewer = at !== null && at >= (before.at ?? 0);
    this.#keep(feed.id, { ...before, ...(isNewer ? { value, at } : {}), error });
    if (isNewer && (before.at === null || JSON.stringify(before.value) !== JSON.stringify(value))) {
      this.#changed({ id: feed.id, value });
    } else if (error === null && before.error !== null) this.#changed({ id: feed.id, value: before.value });
    if (error !== null && before.error !== error) this.#changed({ id: feed.id, error });
  }

  /** Records why a feed is not fetched. @returns whether the reason is new */
  refuse(feed: FeedDefinition, error: string): boolean {
    return this.#failed(feed, error);
  }

  #failed(feed: FeedDefinition, error: string): boolean {
    const before = this.#stateOf(feed);
    if (before === null || before.error === error) return false;
    this.#keep(feed.id, { ...before, error });
    this.#changed({ id: feed.id, error });
    return true;
  }

  #all(): Map<string, Known> {
    this.#known ??= new Map([...this.#journal.feeds()].map(([id, data]) => [id, data as Known]));
    return this.#known;
  }

  #keep(id: string, known: Known): void {
    // First: what cannot be written is not changed.
    this.#journal.setFeed(id, known);
    this.#all().set(id, known);
  }

  /** Whether `work` finished within `ms`. */
  async #finishesWithin(work: Promise<unknown>, ms: number, signal: AbortSignal): Promise<boolean> {
    return await new Promise<boolean>((resolve) => {
      const cancel = this.#clock.schedule(ms, () => resolve(false));
      const done = (inTime: boolean) => () => {
        cancel();
        resolve(inTime);
      };
      signal.addEventListener('abort', done(false));
      work.then(done(true), done(false));
    });
  }
}

/** The feed of the facts about the user: the runtime defines it, and the model cannot change it (C10). */
export function isMemoryFeed({ source }: Pick<FeedDefinition, 'source'>): boolean {
  return source.type === 'internal' && source.name === MEMORY_SOURCE;
}

function isFresh(feed: FeedDefinition, at: number | null, now: number): boolean {
  return at !== null && now - at < freshMs(feed);
}

/** Characters of a value; a longer one is cut (F4). */
export function charsOf({ maxTokens }: FeedDefinition): number {
  return maxTokens * 4;
}

/** How long a value is fresh: that of a periodic feed until it is due again. */
export function freshMs({ cacheTtlMs, when, intervalMs }: FeedDefinition): number {
  return Math.max(cacheTtlMs, when === 'periodic' ? (intervalMs ?? 0) : 0);
}

function withLeastPeriod(feed: FeedDefinition, minMs: number): FeedDefinition {
  const isTimed = feed.when === 'periodic' || feed.intervalMs !== null;
  return isTimed && (feed.intervalMs ?? 0) < minMs ? { ...feed, intervalMs: minMs } : feed;
}

export function isSameSource(one: FeedDefinition, other: FeedDefinition): boolean {
  return JSON.stringify(one.source) === JSON.stringify(other.source);
}

/** Cuts a value whose text is longer than `maxChars` (F4). */
export function cutValue(value: Json, maxChars: number): Json {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  if (text.length <= maxChars) return value;
  return `${text.slice(0, maxChars).toWellFormed()}\n[cut after ${maxChars} of ${text.length} characters]`;
}
