/**
 * The objects of deleted sessions (C2): a session is gone at once, and its objects when the object storage has answered.
 *
 * Owns an entry for each deleted session of this Durable Object that may still have objects, and the attempts to delete
 * them. Does not own the alarm that repeats them (engine/session/session-alarm.ts).
 *
 * Invariants:
 *  1. An entry is written in the transaction that deletes the session, and removed when its objects are deleted.
 *  2. Entries survive the deletion of a later session with the same id, and never name its objects (T5).
 */
import { backoffMs } from '../domain/backoff.ts';
import { limits } from '../domain/limits.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { ObjectStore } from '../domain/ports/storage.ts';
import { boundedObjects } from '../engine/session/bounded-objects.ts';

/** Prefix of the storage keys of entries. */
const KEPT = 'deletedFiles:';

interface Entry {
  /** Until then an object may still be put by a message of the deleted session. */
  readonly until: number;
  /** When its objects are deleted next. */
  readonly dueAt: number;
  readonly failures: number;
}

export class DeletedFiles {
  readonly #storage: DurableObjectStorage;
  readonly #objects: ObjectStore | null;
  readonly #clock: Clock;
  /** By the prefix of the session's objects; read on first use. */
  #known: Map<string, Entry> | null = null;
  #collecting: Promise<void> | null = null;

  constructor(storage: DurableObjectStorage, objects: ObjectStore | null, clock: Clock) {
    this.#storage = storage;
    this.#objects = objects === null ? null : boundedObjects(objects, clock);
    this.#clock = clock;
  }

  get isEmpty(): boolean {
    return this.#entries.size === 0;
  }

  /** When `collect` has something to do, epoch milliseconds; null without entries. */
  get dueAt(): number | null {
    return this.isEmpty ? null : Math.min(...Array.from(this.#entries.values(), ({ dueAt }) => dueAt));
  }

  /**
   * Deletes everything in the storage except the entries, and adds one, atomically.
   *
   * @param objects of the session; `isPending`: some may still be put
   * @param others what else is stored instead of the session
   */
  replaceSession(
    objects: { readonly prefix: string; readonly isPending: boolean } | null,
    others: readonly (readonly [key: string, value: unknown])[],
  ): void {
    const now = this.#clock.now();
    const known = [...this.#entries];
    if (objects !== null) {
      const until = objects.isPending ? now + limits.unreferredFileMs : now;
      known.push([objects.prefix, { until, dueAt: now, failures: 0 }]);
    }
    this.#storage.transactionSync(() => {
      const { sql, kv } = this.#storage;
      const tables = sql.exec<{ name: string }>(
        `SELECT name FROM sqlite_master
         WHERE type = 'table' AND name NOT LIKE '\\_cf\\_%' ESCAPE '\\' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'`,
      );
      for (const { name } of tables.toArray()) sql.exec(`DROP TABLE "${name.replaceAll('"', '""')}"`);
      for (const key of Array.from(kv.list(), ([name]) => name)) kv.delete(key);
      for (const [prefix, entry] of known) kv.put(`${KEPT}${prefix}`, entry);
      for (const [key, value] of others) kv.put(key, value);
    });
    this.#known = new Map(known);
  }

  /**
   * Deletes the objects that are due. Never rejects.
   *
   * @returns the failure after which it is repeated later
   */
  async collect(): Promise<unknown> {
    let failure: unknown = null;
    this.#collecting ??= this.#collect((fault) => {
      failure = fault;
    }).finally(() => {
      this.#collecting = null;
    });
    await this.#collecting;
    return failure;
  }

  async #collect(failed: (fault: unknown) => void): Promise<void> {
    for (const [prefix, entry] of this.#entries) {
      if (entry.dueAt > this.#clock.now()) continue;
      try {
        if (this.#objects === null) throw new Error('Objects of a deleted session remain: no bucket is bound as FILES');
        while (!(await this.#objects.deleteSome(prefix)));
        if (entry.until > this.#clock.now()) this.#set(prefix, { ...entry, dueAt: entry.until, failures: 0 });
        else this.#set(prefix, null);
      } catch (fault) {
        const failures = entry.failures + 1;
        failed(fault);
        const retry = { delayMs: limits.objectRetryMs, maxDelayMs: limits.objectRetryMostMs };
        try {
          this.#set(prefix, { ...entry, dueAt: this.#clock.now() + backoffMs(retry, failures), failures });
        } catch (unwritten) {
          // It stays due.
          failed(unwritten);
        }
      }
    }
  }

  get #entries(): Map<string, Entry> {
    this.#known ??= new Map(
      Array.from(this.#storage.kv.list<Entry>({ prefix: KEPT }), ([key, entry]) => [key.slice(KEPT.length), entry]),
    );
    return this.#known;
  }

  #set(prefix: string, entry: Entry | null): void {
    if (entry === null) {
      this.#storage.kv.delete(`${KEPT}${prefix}`);
      this.#entries.delete(prefix);
    } else {
      this.#storage.kv.put(`${KEPT}${prefix}`, entry);
      this.#entries.set(prefix, entry);
    }
  }
}
