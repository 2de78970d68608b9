/**
 * The model's access to its feeds: `add_context_feed` and the other internal actions (I).
 *
 * A feed is checked completely when it is added: its definition, its source, the relic's endpoint, and the parameters.
 * Then its first value is fetched, so that the model knows at once whether it works.
 */
import { EngineError } from '../../domain/errors.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { FeedDefinition } from '../../domain/manifests/feed.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import type { FeedStore } from '../../domain/ports/session-stores.ts';
import { withFeedEndpoint } from '../../domain/feed-endpoint.ts';
import { isMemoryFeed, isSameSource } from './feeds.ts';
import type { Feeds, FeedView } from './feeds.ts';

interface Access {
  readonly feeds: Feeds;
  readonly resolved: ResolvedAgent;
  /** Why the agent may not use this feed, or null. */
  readonly issueOf: (feed: FeedDefinition) => Promise<FeedIssue | null>;
  /** Fetches the first value of a feed, up to a deadline. */
  readonly fetchFirst: (feed: FeedDefinition) => Promise<void>;
}

export interface FeedIssue {
  readonly code: 'forbidden' | 'invalid_request';
  readonly message: string;
}

export function feedStore({ feeds, resolved, issueOf, fetchFirst }: Access): FeedStore {
  const accept = async (written: JsonObject): Promise<FeedDefinition> => {
    // The manifest validation is loaded on demand, to keep the start of a Worker fast.
    const { readFeed } = await import('../../catalog/schema/feed.ts');
    const read = readFeed(written, feeds.minMs);
    if ('issues' in read) throw new EngineError('invalid_request', read.issues.join('; '));
    const feed = withFeedEndpoint(read.feed, resolved.relics);
    const issue = await issueOf(feed);
    if (issue !== null) throw new EngineError(issue.code, issue.message);
    return feed;
  };
  const find = (id: string): FeedView => {
    const found = feeds.find(resolved, id);
    if (found !== undefined && isMemoryFeed(found.feed)) {
      throw new EngineError('invalid_request', `The feed "${id}" belongs to the runtime; use remember and forget`);
    }
    if (found !== undefined) return found;
    const known =
      feeds
        .list(resolved)
        .map(({ feed }) => feed.id)
        .join(', ') || 'none';
    throw new EngineError(
      'invalid_request',
      `There is no feed "${id.slice(0, limits.excerptChars)}" (known: ${known})`,
    );
  };
  const refuseTooManyPeriodic = (feed: FeedDefinition): void => {
    const others = feeds.list(resolved).filter((view) => view.feed.when === 'periodic' && view.feed.id !== feed.id);
    if (feed.when !== 'periodic' || others.length < limits.periodicFeeds) return;
    const ids = others.map((view) => view.feed.id).join(', ');
    throw new EngineError(
      'invalid_request',
      `A session may have at most ${limits.periodicFeeds} periodic feeds, and there are ${others.length}: ${ids}`,
    );
  };
  /** The definition, with the first value or why there is none. */
  const withFirstValue = async (feed: FeedDefinition): Promise<JsonObject> => {
    if (!feed.enabled) return feedJson(feed);
    if (feeds.find(resolved, feed.id)?.at == null) await fetchFirst(feed);
    const { value = null, at = null, error = null } = feeds.find(resolved, feed.id) ?? {};
    if (at !== null) return { ...feedJson(feed), value };
    return { ...feedJson(feed), error: error ?? 'the source has not answered yet' };
  };
  return {
    list: () => feeds.list(resolved).map(viewJson),
    add: async (written) => {
      const feed = await accept(written);
      const views = feeds.list(resolved);
      const existing = views.find((view) => view.feed.id === feed.id);
      if (existing !== undefined) {
        if (existing.feed.shared !== true && isSameDefinition(existing.feed, feed)) return await withFirstValue(feed);
        throw new EngineError('invalid_request', `The feed "${feed.id}" already exists: update or remove it`);
      }
      if (views.length >= limits.feeds) {
        throw new EngineError('invalid_request', `A session may have at most ${limits.feeds} feeds`);
      }
      refuseTooManyPeriodic(feed);
      feeds.define(feed, false);
      feeds.announce({ id: feed.id, added: true });
      return await withFirstValue(feed);
    },
    update: async (id, changes) => {
      const { feed, at } = find(id);
      const updated = await accept({ ...feedJson(feed), ...changes, id });
      if (feed.when !== 'periodic') refuseTooManyPeriodic(updated);
      // The value of another source does not apply.
      const same = isSameSource(updated, feed);
      feeds.define(updated, same);
      feeds.announce({ id, updated: true });
      return same && (feed.enabled || at !== null) ? feedJson(updated) : await withFirstValue(updated);
    },
    remove: (id) => {
      find(id);
      feeds.remove(id);
      return true;
    },
  };
}

function isSameDefinition(one: FeedDefinition, other: FeedDefinition): boolean {
  return JSON.stringify(feedJson(one)) === JSON.stringify(feedJson(other));
}

/** In the format of `add_context_feed`, so without `shared`: a feed that a model has changed is the session's own. */
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
  const shared = feed.shared === true ? { shared: true } : {};
  return { ...feedJson(feed), ...shared, added_by_model: addedByModel, value, updated_at: at, error };
}
