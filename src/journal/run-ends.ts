/** Queries for what happened after an event, for the export of traces and metrics (O1). */
import type { JournalDatabase } from './journal-database.ts';

/** Events with which something ends that belongs to a run. */
const ENDS = `'agent_completed', 'agent_failed', 'agent_cancelled', 'agent_waiting',
  'action_completed', 'action_failed', 'action_cancelled', 'action_skipped'`;

export class RunEnds {
  readonly #db: JournalDatabase;

  constructor(db: JournalDatabase) {
    this.#db = db;
  }

  /**
   * When the first run ended or began to wait that has an end after this event, epoch milliseconds; null: no such run. Also an
   * action that outlives its run is an end.
   */
  firstAfter(seq: number): number | null {
    const sql = `SELECT MIN(events.at) AS at FROM events JOIN runs ON runs.run = events.run
      WHERE events.seq > ? AND events.type IN (${ENDS}) AND runs.status NOT IN ('queued', 'running')`;
    const at = this.#db.find(sql, seq)[0]?.['at'] ?? null;
    return at === null ? null : Number(at);
  }

  /** The numbers of the runs with events above `after` up to `until`, in order. */
  runsWithin(after: number, until: number): number[] {
    const sql = `SELECT DISTINCT run FROM events WHERE seq > ? AND seq <= ? AND run > 0 ORDER BY run`;
    return this.#db.find(sql, after, until).map((row) => Number(row['run']));
  }

  /** The last event before the runs that are open, and before the newest run; 0 without runs. */
  get beforeOpen(): number {
    const sql = `SELECT MIN(first_seq) AS seq FROM runs WHERE open = 1 OR run = (SELECT MAX(run) FROM runs)`;
    const first = Number(this.#db.find(sql)[0]?.['seq'] ?? 1);
    return Math.max(0, first - 1);
  }
}
