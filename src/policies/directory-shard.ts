/**
 * One shard of the lists of a namespace: its sessions (C6) and their runs (H1), written together.
 *
 * Owns the rules that concern both. Does not own their tables.
 *
 * Invariants:
 *  1. Nothing about a forgotten session is written, also by a write that arrives late.
 *  2. Runs are listed for as long as their sessions may be kept.
 *  3. What is too old is removed by later writes, but not by each of them: after `limits.directoryPurgeAfterRows` rows, which
 *     is less than one removal takes, so a shard does not grow; and after `limits.directoryPurgeMs` if there are few writes.
 */
import type { DirectoryPage, DirectoryRecord, DirectoryRows } from '../domain/directory.ts';
import type { ExecutionRows, ExecutionsPage } from '../domain/execution.ts';
import { limits } from '../domain/limits.ts';
import type { SqlDatabase } from '../domain/ports/storage.ts';
import { DirectoryTable } from './directory-table.ts';
import { ExecutionTable } from './execution-table.ts';

export class DirectoryShard {
  readonly #db: SqlDatabase;
  readonly #sessions: DirectoryTable;
  readonly #executions: ExecutionTable;
  readonly #now: () => number;
  readonly #keptMs: () => number;
  /** Rows that were written since the last removal. */
  #rows = 0;
  #removedAt = -Infinity;

  /**
   * @param now epoch milliseconds
   * @param keptMs how long a run is listed after its start
   */
  constructor(db: SqlDatabase, now: () => number, keptMs: () => number) {
    this.#db = db;
    this.#sessions = new DirectoryTable(db, now);
    this.#executions = new ExecutionTable(db);
    this.#now = now;
    this.#keptMs = keptMs;
  }

  write({ session_id: id, incarnation, number, entry, runs }: DirectoryRecord): void {
    this.#db.transaction(() => {
      if (runs.length > 0 && !this.#sessions.isForgotten(id, incarnation)) {
        for (const run of runs) this.#executions.record(run);
      }
      if (entry !== null) this.#sessions.record({ incarnation, number, entry });
      this.#removeOld(runs.length + 1);
    });
  }

  forget(sessionId: string, incarnation: string): void {
    this.#db.transaction(() => {
      this.#sessions.forget(sessionId, incarnation);
      this.#executions.forget({ session_id: sessionId, ...(incarnation === '' ? {} : { incarnation }) });
    });
  }

  list(page: DirectoryPage): DirectoryRows {
    return this.#sessions.list(page);
  }

  executions(page: ExecutionsPage): ExecutionRows {
    return this.#executions.list(page);
  }

  #removeOld(rows: number): void {
    const now = this.#now();
    this.#rows += rows;
    // The clock may have been set back.
    const hasPassed = Math.abs(now - this.#removedAt) >= limits.directoryPurgeMs;
    if (this.#rows < limits.directoryPurgeAfterRows && !hasPassed) return;
    this.#rows = 0;
    this.#removedAt = now;
    this.#executions.removeBefore(now - this.#keptMs());
    this.#sessions.removeForgotten();
  }
}
