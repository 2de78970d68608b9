/** Edge relics of a test: each store in a database of its own (R6). */
import type { ActionOutcome } from '../src/domain/action.ts';
import type { Clock } from '../src/domain/ports/clock.ts';
import type { EdgeRelicCall, EdgeRelics } from '../src/domain/ports/edge-relics.ts';
import { RelicStore } from '../src/edge-relics/store.ts';
import { openNodeSql } from './node-sql.ts';

interface OpenStore {
  readonly store: RelicStore;
  /** When a store that is not persistent is deleted, epoch milliseconds. */
  idleAt: number;
}

/** Shared by all sessions of the test. */
export class TestRelics implements EdgeRelics {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #stores = new Map<string, OpenStore>();

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  async call(call: EdgeRelicCall): Promise<ActionOutcome> {
    const open = this.#open(call);
    const outcome = open.store.call(call);
    const { persistent, idleMs } = call.relic;
    open.idleAt = persistent ? Infinity : this.#clock.now() + idleMs;
    return outcome;
  }

  async lookup(call: Pick<EdgeRelicCall, 'space' | 'relic' | 'key'>): Promise<ActionOutcome | null> {
    return this.#open(call).store.lookup(call.key);
  }

  #open({ space, relic }: Pick<EdgeRelicCall, 'space' | 'relic'>): OpenStore {
    const key = JSON.stringify([space, relic.name]);
    const known = this.#stores.get(key);
    if (known !== undefined && known.idleAt > this.#clock.now()) return known;
    const sql = openNodeSql();
    const store = new RelicStore({ sql, sizeBytes: () => sql.sizeBytes(), now: () => this.#clock.now() });
    const open: OpenStore = { store, idleAt: Infinity };
    this.#stores.set(key, open);
    return open;
  }
}
