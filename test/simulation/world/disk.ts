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
import type { SqlRow, SqlValue } from '../../../src/domain/ports/storage.ts';
import { openNodeSql } from '../../../testing/node-sql.ts';

/** Key-value storage beside the tables of a session. */
export const CREATE_NOTES = `CREATE TABLE notes (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID`;

/** What is known about the text of a statement: the engine and the world have few of them. */
interface Kind {
  /** It changes the set of tables. */
  readonly definesTables: boolean;
  readonly namesEvents: boolean;
}

const kinds = new Map<string, Kind>();

function kindOf(text: string): Kind {
  let kind = kinds.get(text);
  if (kind === undefined) {
    kind = { definesTables: /\b(?:CREATE|DROP|ALTER)\b/i.test(text), namesEvents: /\bevents\b/.test(text) };
    kinds.set(text, kind);
  }
  return kind;
}

export class Disk {
  #db = openNodeSql();
  /** Names of the tables; null: they have to be read. */
  #tables: ReadonlySet<string> | null = null;
  /** Increases when something is written or lost: what was read before is still the same. */
  version = 0;
  /** Events were written or lost since `durableSeq` was read. */
  #hasNewEvents = false;
  /** Turns since the last commit; 0 means that no transaction is open. */
  #turns = 0;
  #isTurnOpen = false;
  /** The last event that no crash can lose. */
  durableSeq = 0;
  /** The alarm, epoch milliseconds: written like a row. */
  readonly #alarms: { readonly turn: number; readonly at: number | null }[] = [];
  #durableAlarm: number | null = null;

  exec(text: string, parameters: readonly SqlValue[], writes: boolean): SqlRow[] {
    if (writes) this.#write(kindOf(text));
    return this.#db.exec(text, ...parameters);
  }

  script(text: string): void {
    this.#write(kindOf(text));
    this.#db.script(text);
  }

  has(table: string): boolean {
    return this.#tableNames().has(table);
  }

  transaction<T>(body: () => T): T {
    this.#openTurn();
    this.#control('SAVEPOINT body');
    try {
      const value = body();
      this.#control('RELEASE body');
      return value;
    } catch (fault) {
      this.#control('ROLLBACK TO body');
      this.#control('RELEASE body');
      this.#undone();
      throw fault;
    }
  }

  /** Everything that was written until now is durable. */
  commit(): void {
    if (this.#turns === 0) return;
    this.#control('COMMIT');
    this.#turns = 0;
    this.#isTurnOpen = false;
    this.#durableAlarm = this.alarm;
    this.#alarms.length = 0;
    if (this.#hasNewEvents) this.durableSeq = this.#lastSeq();
    this.#hasNewEvents = false;
  }

  /** The host is lost: of the turns since the last commit, this part remains (0 to 1). The turn itself is lost. */
  lose(keeps: number): void {
    const complete = this.#isTurnOpen ? this.#turns - 1 : this.#turns;
    const kept = Math.floor(complete * keeps);
    if (kept < this.#turns) {
      this.#control(`ROLLBACK TO turn${kept + 1}`);
      this.#undone();
    }
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
    this.#db = openNodeSql();
    this.#undone();
    this.#durableAlarm = null;
    this.durableSeq = 0;
  }

  close(): void {
    this.#db.close();
  }

  /** Rows by table. */
  rows(): Record<string, number> {
    return Object.fromEntries(
      Array.from(this.#tableNames(), (name) => [
        name,
        Number(this.exec(`SELECT COUNT(*) AS count FROM ${name}`, [], false)[0]?.['count']),
      ]),
    );
  }

  #tableNames(): ReadonlySet<string> {
    const read = (): SqlRow[] => this.exec(`SELECT name FROM sqlite_master WHERE type = 'table'`, [], false);
    return (this.#tables ??= new Set(read().map(({ name }) => String(name))));
  }

  #control(text: string): void {
    this.#db.exec(text);
  }

  #write({ definesTables, namesEvents }: Kind): void {
    this.#openTurn();
    this.version += 1;
    if (definesTables) this.#tables = null;
    if (namesEvents) this.#hasNewEvents = true;
  }

  /** Writes were undone. */
  #undone(): void {
    this.version += 1;
    this.#tables = null;
    this.#hasNewEvents = true;
  }

  #openTurn(): void {
    if (this.#isTurnOpen) return;
    this.#turns += 1;
    // The first one begins the transaction.
    this.#control(`SAVEPOINT turn${this.#turns}`);
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
