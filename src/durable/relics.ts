/** The edge relics of a session: each is a separate object (R6). */
import type { EdgeRelics } from '../domain/ports/edge-relics.ts';
import type { Env, RelicRpc, Remote } from './env.ts';

const KEPT = 'edgeRelics';

function stubOf(env: Env, space: string, relic: string): Remote<RelicRpc> {
  return env.RELICS.getByName(JSON.stringify([space, relic]));
}

/** The edge relics as one session sees them; it stores the names of its own relics, to delete them with the session. */
export function edgeRelics(env: Env, storage: DurableObjectStorage, session: () => string): EdgeRelics {
  return {
    async call(call) {
      const { space, relic } = call;
      const own = storage.kv.get<string[]>(KEPT) ?? [];
      if (space === session() && !own.includes(relic.name)) storage.kv.put(KEPT, [...own, relic.name]);
      return await stubOf(env, space, relic.name).call(call);
    },
    async lookup({ space, relic, key }) {
      return await stubOf(env, space, relic.name).lookup(key);
    },
  };
}

/** Deletes the session's own edge relics with their content. */
export async function forgetRelics(env: Env, storage: DurableObjectStorage, session: string): Promise<void> {
  const own = storage.kv.get<string[]>(KEPT) ?? [];
  await Promise.all(own.map((relic) => stubOf(env, session, relic).forget()));
  // The first write of the key-value storage creates its table, also a deletion.
  if (own.length > 0) storage.kv.delete(KEPT);
}
