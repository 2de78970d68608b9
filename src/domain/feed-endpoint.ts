/** The endpoint of a relic that a feed calls if its source names none (F1). */
import type { FeedDefinition } from './manifests/feed.ts';
import type { RelicDefinition } from './manifests/relic.ts';
import { isJsonObject, type JsonObject } from './json.ts';

/**
 * The first endpoint that accepts parameters with these names, else the first one; null if the relic has none. Values
 * are not checked: they may contain variables.
 */
export function feedEndpoint({ endpoints }: Pick<RelicDefinition, 'endpoints'>, params: JsonObject): string | null {
  const names = Object.keys(endpoints);
  return names.find((name) => accepts(endpoints[name]?.parameters ?? {}, Object.keys(params))) ?? names[0] ?? null;
}

function accepts(schema: JsonObject, given: readonly string[]): boolean {
  const { properties, required, additionalProperties } = schema;
  const known = isJsonObject(properties) ? properties : {};
  const needed = Array.isArray(required) ? required : [];
  if (needed.some((name) => typeof name === 'string' && !given.includes(name))) return false;
  return additionalProperties !== false || given.every((name) => Object.hasOwn(known, name));
}

/** The feed with the endpoint that it calls. */
export function withFeedEndpoint(feed: FeedDefinition, relics: ReadonlyMap<string, RelicDefinition>): FeedDefinition {
  const { source } = feed;
  if (source.type !== 'relic' || source.action !== null) return feed;
  const relic = relics.get(source.name);
  const action = relic === undefined ? null : feedEndpoint(relic, source.params);
  return action === null ? feed : { ...feed, source: { ...source, action } };
}
