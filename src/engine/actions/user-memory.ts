/** The facts about the user, for the attempts of actions; and the event of a change (C10). */
import { isMemoryAction } from '../../domain/internal-actions.ts';
import type { ActionDeclaration, ActionKey } from '../../domain/action.ts';
import type { EventData } from '../../domain/event.ts';
import { factsChars } from '../../domain/facts.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Json } from '../../domain/json.ts';
import type { FactAnswer, FactCall, FactChange, FactsSnapshot } from '../../domain/ports/user-facts.ts';
import type { UserMemory } from '../../executors/executor.ts';
import { isMemoryFeed } from '../feeds/feeds.ts';
import { factsOwner, feedValue } from '../feeds/memory-feed.ts';
import type { ActionScope } from './action-scope.ts';

/**
 * Null if the session has no facts.
 *
 * @param isRepeated the attempt is not the first one, or it was running when an earlier host was lost
 */
export function userMemory(
  { context, results }: Pick<ActionScope, 'context' | 'results'>,
  key: ActionKey,
  isRepeated: boolean,
): UserMemory | null {
  const { record, resolved, userFacts, feeds, sessionId, runId, clock } = context;
  const { facts } = resolved.agent.memory;
  const owner = factsOwner(record);
  if (facts === undefined || owner === null || userFacts == null) return null;
  const since = results.startedAt(key) ?? clock.now();
  const show = (snapshot: FactsSnapshot): void => {
    const feed = resolved.agent.feeds.find(isMemoryFeed);
    if (feed !== undefined) feeds.put(feed, feedValue(feed, snapshot), snapshot.version);
  };
  return {
    change: async (asked, { id, until }): Promise<FactAnswer> => {
      const call: FactCall = { id, until, since, isRepeated };
      const room = { facts: facts.max, chars: factsChars(facts) };
      const change: FactChange =
        asked.type === 'forget' ? { ...asked, call } : { ...asked, room, by: { sessionId, runId, call } };
      const answer = await userFacts.change(owner, change);
      if (answer.ok) show(answer.after);
      return answer;
    },
    lookup: (id) => userFacts.lookup(owner, id),
  };
}

/** The event of a completed action; null if it has changed no fact. @param output of the executor (user-facts.ts) */
export function memoryEvent(
  { type, name }: Pick<ActionDeclaration, 'type' | 'name'>,
  output: Json | undefined,
): EventData['memory_changed'] | null {
  if (type !== 'internal' || !isMemoryAction(name) || output === undefined || !isJsonObject(output)) return null;
  const { key, value } = output;
  if (typeof key !== 'string') return null;
  if (name === 'forget') return output['forgotten'] === true ? { change: 'forgotten', key } : null;
  return typeof value === 'string' ? { change: 'remembered', key, value } : null;
}
