/**
 * One edge relic (R6): of one session, or shared by name among the sessions of a namespace. Gives the store its storage,
 * clock and alarm. Or the facts about one user (C10), which have neither alarm nor expiry; never both.
 */
import { DurableObject } from 'cloudflare:workers';
import type { ActionOutcome } from '../../domain/action.ts';
import type { EdgeRelicCall } from '../../domain/ports/edge-relics.ts';
import type { FactAnswer, FactChange, FactsSnapshot } from '../../domain/ports/user-facts.ts';
import { FactStore } from '../../edge-relics/fact-store.ts';
import { RelicStore } from '../../edge-relics/store.ts';
import { limits } from '../../domain/limits.ts';
import { ThreadShare } from '../../domain/fair-queue.ts';
import { Pacer } from '../../domain/work.ts';
import { platformClock, platformQueue } from '../platform.ts';
import type { Env, RelicRpc } from '../env.ts';
import { durableSql } from '../sql-storage.ts';

export class RelicObject extends DurableObject<Env> implements RelicRpc {
  #store: RelicStore | null = null;
  #facts: FactStore | null = null;
  /** The last call: each call waits for the previous one, so that a pause does not change the order. */
  #calls: Promise<unknown> = Promise.resolve();
  /** Aborted when everything is deleted: waiting calls must not create the relic again. */
  #life = new AbortController();
  /** The owner of the last caller; it is the same for all callers. */
  #owner: string | null = null;
  readonly #pacer = new Pacer(new ThreadShare(platformQueue, () => this.#owner));

  #open(): RelicStore {
    const { storage } = this.ctx;
    this.#store ??= new RelicStore({
      sql: durableSql(storage),
      sizeBytes: () => storage.sql.databaseSize,
      now: platformClock.now,
    });
    return this.#store;
  }

  async call(call: EdgeRelicCall): Promise<ActionOutcome> {
    const { persistent, idleMs } = call.relic;
    const idleAt = persistent ? null : platformClock.now() + idleMs;
    // First, so that what the call writes is deleted in time, and not before.
    if (idleAt !== null) await this.#arm(idleAt);
    const outcome = await this.#inTurn(call);
    const expiry = this.#open().nextExpiry();
    if (expiry !== null && (idleAt === null || expiry < idleAt)) await this.ctx.storage.setAlarm(expiry);
    return outcome;
  }

  /** Runs a call, which cannot be interrupted, in its turn among the expensive evaluations of this thread. */
  #inTurn(call: EdgeRelicCall): Promise<ActionOutcome> {
    const { signal } = this.#life;
    this.#owner = call.owner;
    const done = this.#calls.then(() =>
      this.#pacer.once(limits.relicCallSteps, (meter) => this.#open().call(call, meter), signal),
    );
    this.#calls = done.catch(() => undefined);
    return done;
  }

  /** The result of the call with this key, after all earlier calls are done. */
  async lookup(key: string): Promise<ActionOutcome | null> {
    await this.#calls;
    return this.#open().lookup(key);
  }

  /** Deletes everything. */
  async forget(): Promise<void> {
    this.#life.abort(new Error('the relic was deleted'));
    this.#life = new AbortController();
    this.#store = null;
    // In this order: with its alarm, what could not be deleted is deleted later.
    await this.ctx.storage.deleteAll();
    await this.ctx.storage.deleteAlarm();
  }

  #openFacts(): FactStore {
    this.#facts ??= new FactStore({ sql: durableSql(this.ctx.storage), now: platformClock.now });
    return this.#facts;
  }

  readFacts(): FactsSnapshot {
    return this.#openFacts().read();
  }

  /** The platform holds the answer back until the change is durable. */
  changeFacts(change: FactChange): FactAnswer {
    return this.#openFacts().change(change);
  }

  lookupFacts(call: string): { readonly changed: number } | null {
    return this.#openFacts().lookup(call);
  }

  override async alarm(): Promise<void> {
    const idleAt = this.ctx.storage.kv.get<number>('idleAt') ?? null;
    if (idleAt !== null && idleAt <= platformClock.now()) {
      await this.forget();
      return;
    }
    this.#open().purge();
    await this.#arm(idleAt);
  }

  /** @param idleAt when a store that is not persistent is deleted; null: never */
  async #arm(idleAt: number | null): Promise<void> {
    if (idleAt !== null) this.ctx.storage.kv.put('idleAt', idleAt);
    const expiry = this.#open().nextExpiry();
    const at = expiry === null ? idleAt : Math.min(expiry, idleAt ?? expiry);
    if (at !== null) await this.ctx.storage.setAlarm(at);
  }
}
