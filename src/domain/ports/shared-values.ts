/** What the sessions of a namespace share. */
import type { Json } from '../json.ts';
import type { FeedSource } from '../manifests/feed.ts';
import type { RelicDefinition } from '../manifests/relic.ts';
import type { ToolDefinition } from '../manifests/tool.ts';

/** A shared feed, with everything that its value depends on: equal requests have the same value (F6). */
export interface SharedFeedRequest {
  /** Namespace that owns the session; null without keys. */
  readonly owner: string | null;
  readonly source: FeedSource;
  /** The definitions of the source, with resolved variables and secrets. */
  readonly tool: ToolDefinition | null;
  readonly relic: RelicDefinition | null;
  /** A longer value is cut (F4). */
  readonly maxChars: number;
  /** An older value is fetched again. */
  readonly maxAgeMs: number;
  /** How long to wait for the fetch if there is an older value. */
  readonly waitMs: number;
}

/** The latest value: when it was fetched (null: never), and why the latest fetch failed (null: it succeeded). */
export interface SharedFeedValue {
  readonly value: Json;
  readonly at: number | null;
  readonly error: string | null;
}

/** Values of feeds that the sessions of a namespace share (F6). */
export interface SharedFeeds {
  /** @throws Error if the value could not be read */
  read(request: SharedFeedRequest): Promise<SharedFeedValue>;
}
