/** The facts about users: each user of an agent has one object, of the class of edge relics (C10). */
import { bytesToHex } from '@noble/hashes/utils.js';
import { EngineError, messageOf } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';
import type { FactsOwner, UserFacts } from '../domain/ports/user-facts.ts';
import { within } from '../domain/sleep.ts';
import type { Env, RelicRpc, Remote } from './env.ts';
import { platformClock } from './platform.ts';

/** The name of no relic begins like this: theirs are JSON. A change of it would hide all facts. */
const PREFIX = 'facts:';

/** Of a text that no other owner has. */
async function nameOf({ owner, agent, userId }: FactsOwner): Promise<string> {
  const identity = new TextEncoder().encode(JSON.stringify([owner, agent, userId]));
  return `${PREFIX}${bytesToHex(new Uint8Array(await crypto.subtle.digest('SHA-256', identity)))}`;
}

export function userFacts(env: Env): UserFacts {
  const call = async <T>(of: FactsOwner, use: (store: Remote<RelicRpc>) => Promise<T>): Promise<T> => {
    const store = env.RELICS.getByName(await nameOf(of));
    const asked = use(store).then(
      (value) => ({ value }),
      (fault: unknown) => ({ fault: messageOf(fault) }),
    );
    const answer = await within(asked, limits.factsTimeoutMs, platformClock, {
      fault: `no answer within ${limits.factsTimeoutMs / 1_000} s`,
    });
    if ('value' in answer) return answer.value;
    throw new EngineError('memory_unavailable', `The facts about the user could not be reached: ${answer.fault}`);
  };
  return {
    read: (of) => call(of, (store) => store.readFacts()),
    change: (of, change) => call(of, (store) => store.changeFacts(change)),
    lookup: (of, id) => call(of, (store) => store.lookupFacts(id)),
  };
}
