/**
 * The session's variables: the current ones, and those before the first run.
 *
 * Owns both tables. The changes between them are events, so the variables of any branch can be restored (C4). Does not own
 * their limits (engine/session/session-variables.ts).
 */
import type { Json } from '../domain/json.ts';
import { utf8Length } from '../domain/utf8.ts';
import type { JournalDatabase } from './journal-database.ts';
import type { RunTable } from './run-table.ts';

/** Each variable's value as JSON, and its size with its name in bytes. */
export type Stored = Map<string, { readonly json: string; readonly bytes: number }>;

export class VariableTable {
  readonly #db: JournalDatabase;
  readonly #runs: RunTable;

  constructor(db: JournalDatabase, runs: RunTable) {
    this.#db = db;
    this.#runs = runs;
  }

  all(): Stored {
    const rows = this.#db.findIn(
      'variables',
      `SELECT key, value, OCTET_LENGTH(key) + OCTET_LENGTH(value) AS bytes FROM variables ORDER BY key`,
    );
    return new Map(
      rows.map((row) => [String(row['key']), { json: String(row['value']), bytes: Number(row['bytes']) }]),
    );
  }

  set(key: string, value: Json): void {
    this.#write('variables', key, value);
  }

  /** Sets a variable before the first run. */
  setFirst(key: string, value: Json): void {
    this.#write('first_variables', key, value);
    this.set(key, value);
  }

  delete(key: string): void {
    this.#db.exec(`DELETE FROM variables WHERE key = ?`, key);
    this.#db.changed();
  }

  /**
   * The run whose branch the current variables are of: the one that began last, or was restored since; 0: none.
   *
   * @param without this run, which begins now
   */
  tip(without = 0): number {
    const begun = this.#runs.lastBegun(without);
    const [restored] = this.#db.findIn('restored', `SELECT run FROM restored WHERE seq >= ?`, begun.seq);
    return restored === undefined ? begun.run : Number(restored['run']);
  }

  /** Those at the end of a run: the first ones, with the changes of its branch. */
  at(last: number): Stored {
    const found: Stored = new Map();
    const set = (key: string, json: string): void =>
      void found.set(key, { json, bytes: utf8Length(key) + utf8Length(json) });
    for (const row of this.#db.findIn('first_variables', `SELECT key, value FROM first_variables ORDER BY key`)) {
      set(String(row['key']), String(row['value']));
    }
    const changes = this.#db.find(
      `SELECT MAX(seq) AS seq FROM events WHERE type = 'variable_changed' AND ${this.#runs.onBranch(last, '?1')}
       GROUP BY data ->> '$.key'`,
      last,
    );
    for (const { seq } of changes) {
      const [row] = this.#db.exec(`SELECT * FROM events WHERE seq = ?`, Number(seq));
      const event = row === undefined ? null : this.#db.readEvent(row).event;
      if (event?.type !== 'variable_changed') continue;
      const { key, value, deleted } = event.data;
      if (deleted === true) found.delete(key);
      else set(key, JSON.stringify(value ?? null));
    }
    return found;
  }

  /** Replaces all variables by those at the end of a run. */
  restore(last: number): void {
    this.#db.atomically(() => {
      const variables = this.at(last);
      this.#db.exec(`DELETE FROM variables`);
      for (const [key, { json }] of variables) {
        this.#db.exec(`INSERT INTO variables (key, value) VALUES (?, ?)`, key, json);
      }
      this.#db.exec(`INSERT OR REPLACE INTO restored (id, run, seq) VALUES (1, ?, ?)`, last, this.#db.lastSeq);
    });
    this.#db.changed();
  }

  #write(table: 'variables' | 'first_variables', key: string, value: Json): void {
    this.#db.exec(
      `INSERT INTO ${table} (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value`,
      key,
      JSON.stringify(value),
    );
    this.#db.changed();
  }
}
