/**
 * The disk of a Durable Object on node:sqlite. It outlives the hosts.
 *
 * Like the platform's: what one turn writes is kept completely or not at all; without a sync, any number of the last
 * turns may be lost with the host.
 *
 * Invariants:
 *  1. Each turn's writes are one savepoint inside a transaction that a sync commits.
 *  2. `lose` keeps a prefix of the turns.
 */
import { DatabaseSync } from 'node:sqlite';
import type { StatementSync } from 'node:sqlite';
import type { SqlRow, SqlValue } from '../../../src/domain/ports/storage.ts';

/** Key-value storage beside the tables of a session. */
export const CREATE_NOTES = `CREATE TABLE notes (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID`;

export class Disk {
  #db = new DatabaseSync(':memory:');
  readonly #statements = new Map<string, StatementSync>();
  /** Turns since the last commit; 0 means that no transaction is open. */
  #turns = 0;
  #isTurnOpen = false;
  /** The last event that no crash can lose. */
  durableSeq = 0;
  /** The alarm, epoch milliseconds: written like a row. */
  readonly #alarms: { readonly turn: number; readonly at: number | null }[] = [];
  #durableAlarm: number | null = null;

  exec(text: string, parameters: readonly SqlValue[], writes: boolean): SqlRow[] {
    if (writes) this.#openTurn();
    let statement = this.#statements.get(text);
    if (statement === undefined) {
      statement = this.#db.prepare(text);
      this.#statements.set(text, statement);
    }
    return statement.all(...parameters) as SqlRow[];
  }

  script(text: string): void {
    this.#openTurn();
    this.#db.exec(text);
  }

  has(table: string): boolean {
    return this.exec(`SELECT 1 FROM sqlite_master WHERE name = ?`, [table], false).length > 0;
  }

  transaction<T>(body: () => T): T {
    this.#openTurn();
    this.#db.exec('SAVEPOINT body');
    try {
      const value = body();
      this.#db.exec('RELEASE body');
      return value;
    } catch (fault) {
      this.#db.exec('ROLLBACK TO body');
      this.#db.exec('RELEASE body');
      throw fault;
    }
  }

  /** Everything that was written until now is durable. */
  commit(): void {
    if (this.#turns === 0) return;
    this.#db.exec('COMMIT');
    this.#turns = 0;
    this.#isTurnOpen = false;
    this.#durableAlarm = this.alarm;
    this.#alarms.length = 0;
    this.durableSeq = this.#lastSeq();
  }

  /** The host is lost: of the turns since the last commit, this part remains (0 to 1). The turn itself is lost. */
  lose(keeps: number): void {
    const complete = this.#isTurnOpen ? this.#turns - 1 : this.#turns;
    const kept = Math.floor(complete * keeps);
    if (kept < this.#turns) this.#db.exec(`ROLLBACK TO turn${kept + 1}`);
    const alarms = this.#alarms.filter(({ turn }) => turn <= kept);
    this.#alarms.splice(0, this.#alarms.length, ...alarms);
    this.commit();
  }

  get alarm(): number | null {
    const last = this.#alarms.at(-1);
    return last === undefined ? this.#durableAlarm : last.at;
  }

  /** How often the alarm was set: one that is set again for the same time fires again. */
  alarmsSet = 0;

  set alarm(at: number | null) {
    this.alarmsSet += 1;
    this.#openTurn();
    this.#alarms.push({ turn: this.#turns, at });
  }

  /** Deletes everything, durably. */
  clear(): void {
    this.commit();
    this.#db.close();
    this.#db = new DatabaseSync(':memory:');
    this.#statements.clear();
    this.#durableAlarm = null;
    this.durableSeq = 0;
  }

  close(): void {
    this.#db.close();
  }

  /** Rows by table. */
  rows(): Record<string, number> {
    const tables = this.exec(`SELECT name FROM sqlite_master WHERE type = 'table'`, [], false);
    return Object.fromEntries(
      tables.map(({ name }) => [
        String(name),
        Number(this.exec(`SELECT COUNT(*) AS count FROM ${String(name)}`, [], false)[0]?.['count']),
      ]),
    );
  }

  #openTurn(): void {
    if (this.#isTurnOpen) return;
    if (this.#turns === 0) this.#db.exec('BEGIN');
    this.#turns += 1;
    this.#db.exec(`SAVEPOINT turn${this.#turns}`);
    this.#isTurnOpen = true;
    queueMicrotask(() => {
      this.#isTurnOpen = false;
    });
  }

  #lastSeq(): number {
    if (!this.has('events')) return 0;
    return Number(this.exec(`SELECT COALESCE(MAX(seq), 0) AS seq FROM events`, [], false)[0]?.['seq'] ?? 0);
  }
}
