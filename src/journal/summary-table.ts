/** Summaries of older turns (C10): which turns each covers, and the one that is due. Their texts are in events. */
import type { RunTable } from './run-table.ts';
import type { JournalDatabase } from './journal-database.ts';

/** A summary: the event with its text, and what it covers: the first `turns` turns of every branch with `untilRun`. */
export interface StoredSummary {
  readonly seq: number;
  /** 0: only turns of the seeded history, so it counts for every branch. */
  readonly untilRun: number;
  readonly turns: number;
}

/** The summary that is due after a run, or was last. */
export interface SummaryWork {
  /** The run that it follows. */
  readonly run: number;
  readonly untilRun: number;
  /** Calls that have begun for the same turns. */
  readonly attempts: number;
  readonly isPending: boolean;
}

export class SummaryTable {
  readonly #db: JournalDatabase;
  readonly #runs: RunTable;

  constructor(db: JournalDatabase, runs: RunTable) {
    this.#db = db;
    this.#runs = runs;
  }

  /**
   * The summary that covers most of a branch.
   *
   * @param last the run that ends the branch; 0: none
   * @param most it covers at most this many turns
   * @param before its event precedes this one; default: any
   */
  latest(last: number, most: number, before: number = Number.MAX_SAFE_INTEGER): StoredSummary | null {
    const sql = `SELECT seq, until_run, turns FROM
        (SELECT seq, until_run, until_run AS run, turns FROM summaries WHERE turns <= ?1 AND seq < ?2)
      WHERE run = 0 OR ${this.#runs.onBranch(last, '?3')} ORDER BY turns DESC, seq DESC LIMIT 1`;
    const [row] = this.#db.findIn('summaries', sql, most, before, last);
    if (row === undefined) return null;
    return { seq: Number(row['seq']), untilRun: Number(row['until_run']), turns: Number(row['turns']) };
  }

  add({ seq, untilRun, turns }: StoredSummary): void {
    this.#db.exec(`INSERT INTO summaries (seq, until_run, turns) VALUES (?, ?, ?)`, seq, untilRun, turns);
    this.#db.changed();
  }

  get work(): SummaryWork | null {
    const [row] = this.#db.findIn('summary_work', `SELECT run, until_run, attempts, pending FROM summary_work`);
    if (row === undefined) return null;
    return {
      run: Number(row['run']),
      untilRun: Number(row['until_run']),
      attempts: Number(row['attempts']),
      isPending: row['pending'] === 1,
    };
  }

  setWork({ run, untilRun, attempts, isPending }: SummaryWork): void {
    this.#db.exec(
      `INSERT INTO summary_work (id, run, until_run, attempts, pending) VALUES (1, ?1, ?2, ?3, ?4)
       ON CONFLICT (id) DO UPDATE SET run = ?1, until_run = ?2, attempts = ?3, pending = ?4`,
      run,
      untilRun,
      attempts,
      isPending ? 1 : 0,
    );
    this.#db.changed();
  }

  /** Adds US dollars of a call, which counts for the session and for none of its runs. */
  addCost(cost: number): void {
    this.#db.exec(`UPDATE summary_work SET cost = COALESCE(cost, 0) + ?`, cost);
    this.#runs.forgetCost();
    this.#db.changed();
  }
}
