/** Facts about users on node:sqlite, with what happens to a change on its way to the store and back (C10). */
import type { FactAnswer, FactChange, UserFacts } from '../../src/domain/ports/user-facts.ts';
import { TestFacts } from '../../testing/user-facts.ts';

export interface UserFactsKit extends UserFacts {
  /** The changes that arrived, in order. */
  readonly changes: FactChange[];
  reads: number;
  readonly storeOf: TestFacts['storeOf'];
}

export function userFactsKit(
  now: () => number,
  around: (arrive: () => FactAnswer) => Promise<FactAnswer> = async (arrive) => arrive(),
): UserFactsKit {
  const facts = new TestFacts({ now });
  const kit: UserFactsKit = {
    changes: [],
    reads: 0,
    storeOf: (of) => facts.storeOf(of),
    read: async (of) => {
      kit.reads += 1;
      return await facts.read(of);
    },
    change: async (of, change) =>
      await around(() => {
        kit.changes.push(change);
        return facts.storeOf(of).change(change);
      }),
    lookup: async (of, call) => await facts.lookup(of, call),
  };
  return kit;
}
