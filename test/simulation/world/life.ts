/**
 * The life of one host: every call of a port goes through it, so that the host can end at any of them. A host that has
 * ended does and sees nothing more.
 *
 * Invariants:
 *  1. After the end, no call of a port has an effect, no timer fires, and no promise of a port settles.
 *  2. The history's crash happens at exactly its call.
 */
import type { Clock } from '../../../src/domain/ports/clock.ts';
import type { SqlDatabase, SqlRow, SqlValue } from '../../../src/domain/ports/storage.ts';
import type { Fault } from '../history.ts';
import { DiskFailure } from './disk-failure.ts';
import { CREATE_NOTES } from './disk.ts';
import type { Stage } from './stage.ts';

/** Thrown by every port of a host that has ended. */
export class HostGone extends Error {
  override readonly name = 'HostGone';
}

const READS = /^\s*SELECT/i;

export class Life {
  readonly number: number;
  readonly gone = Promise.withResolvers<void>();
  isOver = false;
  /** Whether the disk has failed in it: then errors of the engine are expected. */
  hasFailed = false;
  mostTimers = 0;
  readonly #stage: Stage;
  readonly #faults: readonly Fault[];
  readonly #timers = new Set<() => void>();
  #calls = 0;
  #writes = 0;
  #syncs = 0;

  constructor(stage: Stage, number: number) {
    this.#stage = stage;
    this.number = number;
    this.#faults = stage.isCalm ? [] : stage.history.faults.filter((fault) => 'life' in fault && fault.life === number);
    stage.note({ type: 'host_started', life: number });
  }

  get timers(): number {
    return this.#timers.size;
  }

  /** Called at each call of a port. @throws HostGone if the host ends here, or has ended */
  enter(): void {
    if (this.isOver) throw new HostGone();
    this.#calls += 1;
    for (const fault of this.#faults) {
      if (fault.type === 'crash' && fault.call === this.#calls) {
        this.end(`crashed at call ${fault.call}`, fault.keeps);
        throw new HostGone();
      }
    }
  }

  /** @param keeps the part of its unsynced writes that persists, 0 to 1 */
  end(why: string, keeps: number): void {
    if (this.isOver) return;
    this.isOver = true;
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
    this.#stage.disk.lose(keeps);
    this.#stage.note({ type: 'host_ended', life: this.number, why });
    this.gone.resolve();
  }

  readonly clock: Clock = {
    now: () => this.#stage.broken.now?.(this.#stage.hostNow) ?? this.#stage.hostNow,
    schedule: (delayMs, callback) => {
      this.enter();
      const cancel = this.#stage.time.after(delayMs, () => {
        this.#timers.delete(cancel);
        try {
          callback();
        } catch (fault) {
          if (!(fault instanceof HostGone)) throw fault;
        }
      });
      this.#timers.add(cancel);
      this.mostTimers = Math.max(this.mostTimers, this.#timers.size);
      return () => {
        if (this.#stage.broken.keepsTimers === true) return;
        this.#timers.delete(cancel);
        cancel();
      };
    },
  };

  readonly sql: SqlDatabase = {
    exec: (text: string, ...parameters: SqlValue[]): SqlRow[] => {
      this.enter();
      const writes = !READS.test(text);
      if (writes) this.#failWrite();
      this.meet(writes ? 'write' : 'read', text);
      if (writes && this.#stage.broken.writes?.(text, parameters) === false) return [];
      return this.#stage.disk.exec(text, parameters, writes);
    },
    script: (text) => {
      this.enter();
      this.#failWrite();
      this.meet('write', text);
      this.#stage.disk.script(text);
    },
    transaction: (body) => {
      this.enter();
      return this.#stage.disk.transaction(() => {
        const value = body();
        this.meet('write', 'transaction');
        return value;
      });
    },
    sync: async () => {
      this.enter();
      this.#syncs += 1;
      const failing = this.#faults.find((fault) => fault.type === 'sync' && fault.sync === this.#syncs);
      if (failing?.type === 'sync') return await this.#failSync(failing.keeps);
      const { syncMs, broken } = this.#stage;
      if (broken.sync !== undefined) {
        if (broken.sync === 'early') void this.wait(1).then(() => this.#commit());
        return;
      }
      // The turn ends first: what it writes is durable together. Then durable before the host knows it, or only then.
      await this.wait(0);
      const isEarly = this.#syncs % 2 === 0;
      if (isEarly) this.#commit();
      await this.wait(syncMs);
      if (!isEarly) this.#commit();
      if (this.isOver) await new Promise(() => undefined);
    },
    sizeBytes: () => (this.#stage.isDiskFull ? Number.MAX_SAFE_INTEGER : 0),
  };

  /** Key-value storage beside the tables (`ctx.storage.kv`). */
  readonly notes = {
    get: <T>(key: string): T | undefined => {
      const [row] = this.#stage.disk.has('notes') ? this.sql.exec(`SELECT value FROM notes WHERE key = ?`, key) : [];
      return row === undefined ? undefined : (JSON.parse(String(row['value'])) as T);
    },
    put: (key: string, value: unknown): void => {
      if (!this.#stage.disk.has('notes')) this.sql.exec(CREATE_NOTES);
      this.sql.exec(`INSERT OR REPLACE INTO notes (key, value) VALUES (?, ?)`, key, JSON.stringify(value));
    },
    delete: (key: string): void => {
      if (this.#stage.disk.has('notes')) this.sql.exec(`DELETE FROM notes WHERE key = ?`, key);
    },
    list: <T>({ prefix }: { readonly prefix: string }): [string, T][] => {
      if (!this.#stage.disk.has('notes')) return [];
      const sql = `SELECT key, value FROM notes WHERE substr(key, 1, ?) = ? ORDER BY key`;
      return this.sql
        .exec(sql, prefix.length, prefix)
        .map(({ key, value }) => [String(key), JSON.parse(String(value)) as T]);
    },
  };

  /** Called at each statement. `alarm` and `everything` are statements as well. @throws DiskFailure if it fails */
  meet(does: 'write' | 'read', text: string): void {
    const isOfFork = does === 'read' && this.forkPages > 0;
    const statements = this.#stage.statements;
    if (!statements.fails('session', does, text) && !(isOfFork && statements.fails('fork', 'read', text))) return;
    throw this.#failed(does);
  }

  #failed(what: 'write' | 'read' | 'sync'): DiskFailure {
    this.hasFailed = this.#stage.hasDiskFailed = true;
    this.#stage.note({ type: 'disk_failed', what });
    return new DiskFailure(`a ${what} failed`);
  }

  /** Pages of forks that are being read. */
  forkPages = 0;

  /** The platform sends a request to another object when everything that was written before it is durable. */
  async gate(): Promise<void> {
    this.enter();
    await this.wait(0);
    await this.wait(this.#stage.syncMs);
    this.#commit();
  }

  /** What another object answers, unless the host ends first. */
  async answered<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } finally {
      if (this.isOver) await new Promise(() => undefined);
    }
  }

  /** Resolves after this time, unless the host ends first; then never. */
  async wait(ms: number): Promise<void> {
    if (ms <= 0) await Promise.resolve();
    else await new Promise<void>((resolve) => void this.#stage.time.after(ms, () => resolve()));
    if (this.isOver) await new Promise(() => undefined);
  }

  #commit(): void {
    if (!this.isOver) this.#stage.disk.commit();
  }

  #failWrite(): void {
    this.#writes += 1;
    if (!this.#faults.some((fault) => fault.type === 'write' && fault.statement === this.#writes)) return;
    throw this.#failed('write');
  }

  async #failSync(keeps: number): Promise<void> {
    const failure = this.#failed('sync');
    // The platform resets an object whose storage has failed, soon.
    this.#stage.time.after(1, () => this.end('reset after a failed sync', keeps));
    await Promise.resolve();
    throw failure;
  }
}
