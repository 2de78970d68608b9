/**
 * The list of executions of one API key (H1). It is written after the answer, so it may lag; the authoritative state of
 * an execution is its session.
 */
import { DurableObject } from 'cloudflare:workers';
import type { ExecutionEntry, ExecutionsPage } from '../../http/routes/executions.ts';
import { readSettings } from '../../settings/settings.ts';
import type { Env, ExecutionIndexRpc } from '../env.ts';

export class ExecutionIndexObject extends DurableObject<Env> implements ExecutionIndexRpc {
  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    ctx.storage.sql.exec(
      `CREATE TABLE IF NOT EXISTS executions (
         execution_id TEXT PRIMARY KEY, started_at INTEGER NOT NULL, entry TEXT NOT NULL
       ) WITHOUT ROWID`,
    );
    ctx.storage.sql.exec(`CREATE INDEX IF NOT EXISTS executions_by_start ON executions (started_at)`);
    // Makes rare statuses fast to find.
    ctx.storage.sql.exec(
      `CREATE INDEX IF NOT EXISTS executions_by_status ON executions (entry ->> '$.status', started_at)`,
    );
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

  /** Removes deleted sessions from the list. */
  forget(executionIds: readonly string[]): void {
    for (const id of executionIds) this.ctx.storage.sql.exec(`DELETE FROM executions WHERE execution_id = ?`, id);
  }

  /** Newest first; ties are ordered by id. */
  list({ limit, before, status }: ExecutionsPage): ExecutionEntry[] {
    const { at, id } = before ?? { at: Number.MAX_SAFE_INTEGER, id: '' };
    const order = `AND started_at <= ? AND (started_at < ? OR execution_id < ?) ORDER BY started_at DESC, execution_id DESC LIMIT ?`;
    const { sql } = this.ctx.storage;
    const rows =
      status === null
        ? sql.exec(`SELECT entry FROM executions WHERE TRUE ${order}`, at, at, id, limit)
        : sql.exec(`SELECT entry FROM executions WHERE entry ->> '$.status' = ? ${order}`, status, at, at, id, limit);
    return rows.toArray().map((row) => JSON.parse(String(row['entry'])) as ExecutionEntry);
  }
}
