/** Feeds of agents after validation. */
import type { ManifestActionType } from '../action-types.ts';
import type { Json, JsonObject } from '../json.ts';

/** What `type` of a feed may say (F1): when it is refreshed, or its source. */
export const FEED_TYPES = ['on_demand', 'periodic', 'internal', 'relic', 'tool', 'workflow', 'llm'] as const;

/** The source of a feed's value (F1). `name` is an internal source, a tool, a relic, … */
export interface FeedSource {
  readonly type: ManifestActionType;
  readonly name: string;
  /** A relic's endpoint; null for other sources. */
  readonly action: string | null;
  readonly params: JsonObject;
}

/** A value that is kept current in the prompt (F1). */
export interface FeedDefinition {
  readonly id: string;
  /** `on_demand`: at the start of an iteration if its cache is stale; `periodic`: also by a timer (F3). */
  readonly when: 'on_demand' | 'periodic';
  /** For periodic feeds; otherwise null. */
  readonly intervalMs: number | null;
  /** How long a value counts as fresh. */
  readonly cacheTtlMs: number;
  /** Longer values are cut, with a marker (F4). */
  readonly maxTokens: number;
  readonly enabled: boolean;
  /** Text with a variable that decides in each session instead of `enabled` (M5). */
  readonly enabledBy?: string;
  readonly source: FeedSource;
  readonly onError: 'skip' | 'use_cached' | 'use_default';
  /** Shown when `onError` is `use_default`. */
  readonly defaultValue: Json;
  /** For periodic feeds: the source is called repeatedly although its effects are unsafe (S7). Default false. */
  readonly allowUnsafe?: boolean;
  /** All sessions of a namespace use one fetch of the source (F6). Default false. */
  readonly shared?: boolean;
}
