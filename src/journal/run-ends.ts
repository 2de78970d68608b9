/** Queries for what happened after an event, for the export of traces and metrics (O1). */
import { journaledWhere } from '../domain/event-table.ts';
import { rowsUntil } from './event-rows.ts';
import type { JournalDatabase } from './journal-database.ts';

const quoted = (types: readonly string[]): string => types.map((type) => `'${type}'`).join(', ');
const RUN_ENDS = quoted(journaledWhere(({ ends }) => ends === 'run'));
const ACTION_ENDS = quoted(journaledWhere(({ ends }) => ends === 'action'));

export class RunEnds {
  readonly #db: JournalDatabase;

  constructor(db: JournalDatabase) {
    this.#db = db;
  }

  /**
   * When the first run ended or began to wait after this event, epoch milliseconds; else when the first action ended after it
   * that outlives its run; null: neither.
   */
  firstAfter(seq: number): number | null {
    const sql = `SELECT MIN(CASE WHEN events.type IN (${RUN_ENDS}) THEN events.at END) AS run, MIN(events.at) AS action
      FROM events JOIN runs ON runs.run = events.run
      WHERE events.seq > ? AND events.type IN (${RUN_ENDS}, ${ACTION_ENDS}) AND runs.status NOT IN ('queued', 'running')`;
    const [row] = this.#db.find(sql, seq);
    const at = row?.['run'] ?? row?.['action'] ?? null;
    return at === null ? null : Number(at);
  }

  /** The numbers of the runs with events above `after` up to `until`, in order. */
  runsWithin(after: number, until: number): number[] {
    const sql = `SELECT DISTINCT run FROM events WHERE seq > ?1 AND ${rowsUntil('?2')} AND run > 0 ORDER BY run`;
    return this.#db.find(sql, after, until).map((row) => Number(row['run']));
  }

  /** The last event before the runs that are open; null: none is open. */
  get beforeOpen(): number | null {
    const seq = this.#db.find(`SELECT MIN(first_seq) AS seq FROM runs WHERE open = 1`)[0]?.['seq'] ?? null;
    return seq === null ? null : Math.max(0, Number(seq) - 1);
  }
}
