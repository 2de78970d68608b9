/** Facts about users of a test: those of each user of an agent in a database of its own (C10). */
import type { Clock } from '../src/domain/ports/clock.ts';
import type { FactAnswer, FactChange, FactsOwner, FactsSnapshot, UserFacts } from '../src/domain/ports/user-facts.ts';
import { FactStore } from '../src/edge-relics/fact-store.ts';
import { openNodeSql } from './node-sql.ts';

/** Shared by all sessions of the test. */
export class TestFacts implements UserFacts {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #stores = new Map<string, FactStore>();

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  async read(of: FactsOwner): Promise<FactsSnapshot> {
    return this.storeOf(of).read();
  }

  async change(of: FactsOwner, change: FactChange): Promise<FactAnswer> {
    return this.storeOf(of).change(change);
  }

  async lookup(of: FactsOwner, call: string): Promise<{ readonly changed: number } | null> {
    return this.storeOf(of).lookup(call);
  }

  storeOf({ owner, agent, userId }: FactsOwner): FactStore {
    const name = JSON.stringify([owner, agent, userId]);
    const known = this.#stores.get(name);
    if (known !== undefined) return known;
    const store = new FactStore({ sql: openNodeSql(), now: () => this.#clock.now() });
    this.#stores.set(name, store);
    return store;
  }
}
