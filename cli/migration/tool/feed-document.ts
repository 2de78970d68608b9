/**
 * Documents of kind Feed: a script that agent-lib polls for the context of its agents. Here it is a tool without
 * parameters, and a context feed names the tool as its source. The tool's `metadata.feed` keeps what the author wrote
 * about polling, for the agents that import the feed (`import.feeds`):
 *
 * ```yaml
 * metadata:
 *   feed: { interval: 30 }   # time between two polls, as in our feeds; absent: the author wrote none
 * ```
 *
 * Its effects are `idempotent`: polling is what a Feed is for, so a periodic feed may have it as its source.
 */
import type { JsonObject } from '../../../src/domain/json.ts';
import type { Draft } from '../draft.ts';

/** The kind, in lower case. */
const FEED_DOCUMENT = 'feed';

const INTERVALS = ['interval', 'interval_secs', 'interval_seconds', 'refresh_seconds', 'poll_interval'] as const;

export function isFeedDocument({ kind }: JsonObject): boolean {
  return typeof kind === 'string' && kind.toLowerCase() === FEED_DOCUMENT;
}

export function understandFeedDocument(draft: Draft): void {
  draft.note(['kind'], 'Feed, understood as a tool that context feeds can have as their source');
  draft.set(['kind'], 'Tool');
  if (!draft.has(['effects'])) draft.set(['effects'], 'idempotent', ['kind']);
  if (!draft.has(['metadata', 'feed'])) draft.set(['metadata', 'feed'], {}, ['kind']);
  const interval = INTERVALS.find((name) => draft.has([name]));
  if (interval !== undefined) draft.move([interval], ['metadata', 'feed', 'interval']);
}
