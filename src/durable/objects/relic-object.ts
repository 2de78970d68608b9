/**
 * One edge relic (R6): a session's own, or one that the sessions of an API key share by its name. Gives
 * the store its storage, its clock and its alarm.
 */
import { DurableObject } from 'cloudflare:workers';
import type { ActionOutcome } from '../../domain/action.ts';
import type { EdgeRelicCall, EdgeRelics } from '../../domain/ports.ts';
import { RelicStore } from '../../edge-relics/store.ts';
import { limits } from '../../domain/limits.ts';
import { Share } from '../../domain/turns.ts';
import { Pacer } from '../../domain/work.ts';
import { platformClock, platformTurns } from '../platform.ts';
import type { Env } from '../settings.ts';
import { durableSql } from '../sql-storage.ts';

export class RelicObject extends DurableObject<Env> {
  #store: RelicStore | null = null;
  /** The calls so far: each waits for the one before it, so that a pause changes no order. */
  #calls: Promise<unknown> = Promise.resolve();
  /** Aborted when everything is forgotten: calls that wait then must not begin it anew. */
  #life = new AbortController();
  /** Of the last caller: all of them have the same. */
  #owner: string | null = null;
  readonly #pacer = new Pacer(new Share(platformTurns, () => this.#owner));

  #open(): RelicStore {
    const { storage } = this.ctx;
    this.#store ??= new RelicStore({
      sql: durableSql(storage),
      sizeBytes: () => storage.sql.databaseSize,
      now: platformClock.now,
    });
    return this.#store;
  }

  /** @param call an `EdgeRelicCall` as JSON; @returns an `ActionOutcome` as JSON */
  async call(call: string): Promise<string> {
    const read = JSON.parse(call) as EdgeRelicCall;
    const outcome = await this.#inTurn(read);
    const { persistent, idleMs } = read.relic;
    await this.#arm(persistent ? null : platformClock.now() + idleMs);
    return JSON.stringify(outcome);
  }

  /** A call cannot be interrupted, and takes its turn among the expensive evaluations of this thread. */
  #inTurn(call: EdgeRelicCall): Promise<ActionOutcome> {
    const { signal } = this.#life;
    this.#owner = call.owner;
    const done = this.#calls.then(() =>
      this.#pacer.once(limits.relicCallSteps, (meter) => this.#open().call(call, meter), signal),
    );
    this.#calls = done.catch(() => undefined);
    return done;
  }

  /** What a call with this key has done, once the calls before this question are done. */
  async lookup(key: string): Promise<string> {
    await this.#calls;
    return JSON.stringify(this.#open().lookup(key));
  }

  /** Forgets everything. */
  async forget(): Promise<void> {
    this.#life.abort(new Error('the relic was forgotten'));
    this.#life = new AbortController();
    this.#store = null;
    await this.ctx.storage.deleteAlarm();
    await this.ctx.storage.deleteAll();
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

  /** @param idleAt when a store that does not outlive its use is forgotten; null: never */
  async #arm(idleAt: number | null): Promise<void> {
    if (idleAt !== null) this.ctx.storage.kv.put('idleAt', idleAt);
    const expiry = this.#open().nextExpiry();
    const at = expiry === null ? idleAt : Math.min(expiry, idleAt ?? expiry);
    if (at !== null) await this.ctx.storage.setAlarm(at);
  }
}

const KEPT = 'edgeRelics';

function stubOf(env: Env, space: string, relic: string): DurableObjectStub<RelicObject> {
  return env.RELICS.getByName(JSON.stringify([space, relic]));
}

/** The edge relics as one session sees them; it keeps the names of its own, so that they can end with it. */
export function edgeRelics(env: Env, storage: DurableObjectStorage, session: () => string): EdgeRelics {
  return {
    async call(call) {
      const { space, relic } = call;
      const own = storage.kv.get<string[]>(KEPT) ?? [];
      if (space === session() && !own.includes(relic.name)) storage.kv.put(KEPT, [...own, relic.name]);
      return JSON.parse(await stubOf(env, space, relic.name).call(JSON.stringify(call))) as ActionOutcome;
    },
    async lookup({ space, relic, key }) {
      return JSON.parse(await stubOf(env, space, relic.name).lookup(key)) as ActionOutcome | null;
    },
  };
}

/** Ends the session's own edge relics with everything that they hold. */
export async function forgetRelics(env: Env, storage: DurableObjectStorage, session: string): Promise<void> {
  const own = storage.kv.get<string[]>(KEPT) ?? [];
  await Promise.all(own.map((relic) => stubOf(env, session, relic).forget()));
  storage.kv.delete(KEPT);
}
