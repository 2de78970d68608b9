/** Facts about users on node:sqlite: one store for each user of an agent, as in production (C10). */
import type { FactAnswer, FactChange, FactsOwner, UserFacts } from '../../src/domain/ports/user-facts.ts';
import { FactStore } from '../../src/edge-relics/fact-store.ts';
import { openNodeSql } from './node-sql.ts';

export interface UserFactsKit extends UserFacts {
  /** The changes that arrived, in order. */
  readonly changes: FactChange[];
  reads: number;
  storeOf(of: FactsOwner): FactStore;
}

/** @param around replaces what happens to a change on its way to the store and back */
export function userFactsKit(
  now: () => number,
  around: (arrive: () => FactAnswer) => Promise<FactAnswer> = async (arrive) => arrive(),
): UserFactsKit {
  const stores = new Map<string, FactStore>();
  const storeOf = (of: FactsOwner): FactStore => {
    const name = JSON.stringify([of.owner, of.agent, of.userId]);
    const store = stores.get(name) ?? new FactStore({ sql: openNodeSql(), now });
    stores.set(name, store);
    return store;
  };
  const kit: UserFactsKit = {
    changes: [],
    reads: 0,
    storeOf,
    read: async (of) => {
      kit.reads += 1;
      return storeOf(of).read();
    },
    change: async (of, change) =>
      await around(() => {
        kit.changes.push(change);
        return storeOf(of).change(change);
      }),
    lookup: async (of, call) => storeOf(of).lookup(call),
  };
  return kit;
}
