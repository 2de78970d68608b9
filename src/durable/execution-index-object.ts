/**
 * The list of executions of one API key (H1): written after the answer, so it may lag; the truth about
 * an execution is its session.
 */
import { DurableObject } from 'cloudflare:workers';
import type { ExecutionEntry } from '../http/app.ts';
import { readSettings } from './settings.ts';
import type { Env } from './settings.ts';

export class ExecutionIndexObject extends DurableObject<Env> {
  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    ctx.storage.sql.exec(
      `CREATE TABLE IF NOT EXISTS executions (
         execution_id TEXT PRIMARY KEY, started_at INTEGER NOT NULL, entry TEXT NOT NULL
       ) WITHOUT ROWID`,
    );
    ctx.storage.sql.exec(`CREATE INDEX IF NOT EXISTS executions_by_start ON executions (started_at)`);
  }

  record(entry: ExecutionEntry): void {
    this.ctx.storage.sql.exec(
      `INSERT OR REPLACE INTO executions (execution_id, started_at, entry) VALUES (?, ?, ?)`,
      entry.execution_id,
      entry.started_at,
      JSON.stringify(entry),
    );
    const oldest = entry.started_at - readSettings(this.env).sessionExpiryMs;
    this.ctx.storage.sql.exec(`DELETE FROM executions WHERE started_at < ?`, oldest);
  }

  /** A session that is deleted is not listed any more. */
  forget(executionIds: readonly string[]): void {
    for (const id of executionIds) this.ctx.storage.sql.exec(`DELETE FROM executions WHERE execution_id = ?`, id);
  }

  /** Newest first; `before` is the start time of the last one of the page before. */
  list(page: { limit: number; before: number | null }): ExecutionEntry[] {
    return this.ctx.storage.sql
      .exec(
        `SELECT entry FROM executions WHERE started_at < ? ORDER BY started_at DESC LIMIT ?`,
        page.before ?? Number.MAX_SAFE_INTEGER,
        page.limit,
      )
      .toArray()
      .map((row) => JSON.parse(String(row['entry'])) as ExecutionEntry);
  }
}
