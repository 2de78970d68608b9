/** One shard of the list of open approvals (J8), in a SQL database. The calls stay in their sessions. */
import type { SqlDatabase } from '../domain/ports/storage.ts';

interface ListedApproval {
  readonly approval_id: string;
  readonly requested_at: number;
}

interface Page {
  readonly limit: number;
  readonly after: { readonly at: number; readonly id: string } | null;
}

export class ApprovalTable<T extends ListedApproval> {
  readonly #db: SqlDatabase;

  constructor(db: SqlDatabase) {
    this.#db = db;
    db.exec(
      `CREATE TABLE IF NOT EXISTS approvals (
         approval_id TEXT PRIMARY KEY, session_id TEXT NOT NULL, requested_at INTEGER NOT NULL, entry TEXT NOT NULL
       ) WITHOUT ROWID`,
    );
    db.exec(`CREATE INDEX IF NOT EXISTS approvals_by_time ON approvals (requested_at, approval_id)`);
    db.exec(`CREATE INDEX IF NOT EXISTS approvals_by_session ON approvals (session_id)`);
  }

  /** Replaces the open approvals of a session. */
  keep(sessionId: string, approvals: readonly T[]): void {
    this.#db.transaction(() => {
      this.#db.exec(`DELETE FROM approvals WHERE session_id = ?`, sessionId);
      for (const approval of approvals) {
        this.#db.exec(
          `INSERT OR REPLACE INTO approvals (approval_id, session_id, requested_at, entry) VALUES (?, ?, ?, ?)`,
          approval.approval_id,
          sessionId,
          approval.requested_at,
          JSON.stringify(approval),
        );
      }
    });
  }

  /** Removes settled approvals. */
  settle(ids: readonly string[]): void {
    for (const id of ids) this.#db.exec(`DELETE FROM approvals WHERE approval_id = ?`, id);
  }

  /** Oldest first; ties are ordered by id. */
  list({ limit, after }: Page): T[] {
    const { at, id } = after ?? { at: -1, id: '' };
    return this.#db
      .exec(
        `SELECT entry FROM approvals WHERE requested_at >= ?1 AND (requested_at > ?1 OR approval_id > ?2)
         ORDER BY requested_at, approval_id LIMIT ?3`,
        at,
        id,
        limit,
      )
      .map((row) => JSON.parse(String(row['entry'])) as T);
  }
}
