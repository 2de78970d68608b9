/** The feed of the facts about the user: who has it, and its value (C10). */
import { MEMORY_FEED, MEMORY_SOURCE, factsValue } from '../../domain/facts.ts';
import type { WithoutFacts } from '../../domain/facts.ts';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { AgentDefinition } from '../../domain/manifests/agent.ts';
import type { FeedDefinition } from '../../domain/manifests/feed.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import type { FactsOwner, FactsSnapshot, UserFacts } from '../../domain/ports/user-facts.ts';
import type { SessionRecord } from '../../domain/session.ts';
import { charsOf } from './feeds.ts';
import type { Fetched } from './feeds.ts';

/**
 * The agent as the session has it: with the feed, or without facts if the session has no user, or is that of a sub-agent.
 * Nothing else decides about this: prompt, actions and names follow from it.
 */
export function withFacts(resolved: ResolvedAgent, { kind, user_id: user }: SessionRecord): ResolvedAgent {
  const { agent } = resolved;
  const { facts, ...memory } = agent.memory;
  if (facts === undefined) return resolved;
  const without: WithoutFacts | null = kind === 'child' ? 'sub_agent' : user === null ? 'no_user' : null;
  if (without !== null) return { ...resolved, withoutFacts: without, agent: { ...agent, memory } };
  const feeds = agent.feeds.filter(({ id }) => id !== MEMORY_FEED);
  return { ...resolved, agent: { ...agent, feeds: [...feeds, memoryFeed(facts)] } };
}

/** It is read once in a run, when it is first needed. Without a current value, the prompt does not show it. */
function memoryFeed({ maxTokens }: NonNullable<AgentDefinition['memory']['facts']>): FeedDefinition {
  return {
    id: MEMORY_FEED,
    when: 'on_demand',
    intervalMs: null,
    cacheTtlMs: limits.sessionExpiryMs,
    maxTokens,
    enabled: true,
    source: { type: 'internal', name: MEMORY_SOURCE, action: null, params: {} },
    onError: 'skip',
    defaultValue: null,
  };
}

/** Null: the session has no user. */
export function factsOwner({ owner, agent, user_id: userId }: SessionRecord): FactsOwner | null {
  return userId === null ? null : { owner, agent, userId };
}

/** What prompts and references see. */
export function feedValue(feed: FeedDefinition, { facts }: FactsSnapshot): JsonObject {
  return factsValue(facts, charsOf(feed));
}

/** @throws Error with the reason if the facts cannot be read */
export async function fetchFacts(
  feed: FeedDefinition,
  { record, userFacts }: { readonly record: SessionRecord; readonly userFacts?: UserFacts | null },
): Promise<Fetched> {
  const owner = factsOwner(record);
  if (owner === null || userFacts == null) throw new Error('this runtime keeps no facts about users');
  const snapshot = await userFacts.read(owner);
  return { value: feedValue(feed, snapshot), version: snapshot.version };
}
