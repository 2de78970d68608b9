/**
 * The session's variables: the current ones, and those before the first run.
 *
 * Owns both tables. The changes between them are events, so the variables of any branch can be restored (C4). Does not own
 * their limits (engine/session/session-variables.ts).
 */
import type { Json } from '../domain/json.ts';
import type { JournalDatabase } from './journal-database.ts';
import type { RunTable } from './run-table.ts';

export class VariableTable {
  readonly #db: JournalDatabase;
  readonly #runs: RunTable;

  constructor(db: JournalDatabase, runs: RunTable) {
    this.#db = db;
    this.#runs = runs;
  }

  /** Each variable's value as JSON, and its size with its name in bytes. */
  all(): Map<string, { readonly json: string; readonly bytes: number }> {
    const rows = this.#db.find(
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

  /** Replaces all variables by those at the end of a run: the first ones, with the changes of its branch. */
  restore(last: number): void {
    this.#db.atomically(() => {
      this.#db.exec(`DELETE FROM variables`);
      this.#db.exec(`INSERT INTO variables (key, value) SELECT key, value FROM first_variables`);
      const changes = this.#db.exec(
        `SELECT MAX(seq) AS seq FROM events WHERE type = 'variable_changed' AND ${this.#runs.onBranch(last)}
         GROUP BY data ->> '$.key'`,
      );
      for (const { seq } of changes) {
        const [row] = this.#db.exec(`SELECT * FROM events WHERE seq = ?`, Number(seq));
        const event = row === undefined ? null : this.#db.readEvent(row).event;
        if (event?.type !== 'variable_changed') continue;
        const { key, value, deleted } = event.data;
        if (deleted === true) this.delete(key);
        else this.set(key, value ?? null);
      }
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
