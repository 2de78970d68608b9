/**
 * The lists of executions and open approvals of one namespace (H1, J8). They are written after the answer, so they may
 * lag; the authoritative state is in the session.
 */
import { DurableObject } from 'cloudflare:workers';
import type { ApprovalsPage, OpenApproval } from '../../engine/actions/approval-list.ts';
import type { ExecutionEntry, ExecutionsPage } from '../../http/routes/executions.ts';
import { runIdOf } from '../../journal/run-id.ts';
import { readSettings } from '../../settings/settings.ts';
import type { Env, ExecutionIndexRpc } from '../env.ts';

/** The kind of an entry; entries of earlier versions have none, and are executions. */
const KIND = `COALESCE(entry ->> '$.kind', 'execution')`;

/** Entries of earlier versions have fewer members. */
function storedEntry(json: string): ExecutionEntry {
  const entry = JSON.parse(json) as Omit<ExecutionEntry, 'kind' | 'run_id' | 'error'> & Partial<ExecutionEntry>;
  return { run_id: entry.execution_id, kind: 'execution', error: null, ...entry };
}

export class ExecutionIndexObject extends DurableObject<Env> implements ExecutionIndexRpc {
  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    ctx.storage.sql.exec(
      `CREATE TABLE IF NOT EXISTS executions (
         execution_id TEXT PRIMARY KEY, started_at INTEGER NOT NULL, entry TEXT NOT NULL
       ) WITHOUT ROWID`,
    );
    ctx.storage.sql.exec(`CREATE INDEX IF NOT EXISTS executions_by_start ON executions (started_at)`);
    // Makes rare kinds and statuses fast to find.
    ctx.storage.sql.exec(`CREATE INDEX IF NOT EXISTS executions_by_kind ON executions (${KIND}, started_at)`);
    ctx.storage.sql.exec(
      `CREATE INDEX IF NOT EXISTS executions_by_status ON executions (entry ->> '$.status', started_at)`,
    );
    ctx.storage.sql.exec(
      `CREATE TABLE IF NOT EXISTS approvals (
         approval_id TEXT PRIMARY KEY, session_id TEXT NOT NULL, requested_at INTEGER NOT NULL, entry TEXT NOT NULL
       ) WITHOUT ROWID`,
    );
    ctx.storage.sql.exec(`CREATE INDEX IF NOT EXISTS approvals_by_time ON approvals (requested_at, approval_id)`);
    ctx.storage.sql.exec(`CREATE INDEX IF NOT EXISTS approvals_by_session ON approvals (session_id)`);
  }

  keepApprovals(sessionId: string, approvals: readonly OpenApproval[]): void {
    const { sql } = this.ctx.storage;
    sql.exec(`DELETE FROM approvals WHERE session_id = ?`, sessionId);
    for (const approval of approvals) {
      sql.exec(
        `INSERT OR REPLACE INTO approvals (approval_id, session_id, requested_at, entry) VALUES (?, ?, ?, ?)`,
        approval.approval_id,
        sessionId,
        approval.requested_at,
        JSON.stringify(approval),
      );
    }
  }

  settleApprovals(ids: readonly string[]): void {
    for (const id of ids) this.ctx.storage.sql.exec(`DELETE FROM approvals WHERE approval_id = ?`, id);
  }

  /** Oldest first; ties are ordered by id. */
  approvals({ limit, after }: ApprovalsPage): OpenApproval[] {
    const { at, id } = after ?? { at: -1, id: '' };
    return this.ctx.storage.sql
      .exec(
        `SELECT entry FROM approvals WHERE requested_at >= ?1 AND (requested_at > ?1 OR approval_id > ?2)
         ORDER BY requested_at, approval_id LIMIT ?3`,
        at,
        id,
        limit,
      )
      .toArray()
      .map((row) => JSON.parse(String(row['entry'])) as OpenApproval);
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

  /** Removes the runs of a deleted session from the list. */
  forgetSession(sessionId: string, incarnation: string | null): void {
    // The ids of its runs begin in the same way, and `:` follows after the digits.
    const first = runIdOf({ session_id: sessionId, ...(incarnation === null ? {} : { incarnation }) }, 0);
    const last = `${first.slice(0, -1)}:`;
    this.ctx.storage.sql.exec(`DELETE FROM executions WHERE execution_id >= ? AND execution_id < ?`, first, last);
  }

  /** Newest first; ties are ordered by id. */
  list({ limit, before, status, kind }: ExecutionsPage): ExecutionEntry[] {
    const { at, id } = before ?? { at: Number.MAX_SAFE_INTEGER, id: '' };
    const filters: readonly (readonly [condition: string, value: string | null])[] = [
      [`entry ->> '$.status' = ?`, status],
      [`${KIND} = ?`, kind],
    ];
    const given = filters.filter(([, value]) => value !== null);
    const where = given.map(([condition]) => `${condition} AND `).join('');
    return this.ctx.storage.sql
      .exec(
        `SELECT entry FROM executions WHERE ${where} started_at <= ? AND (started_at < ? OR execution_id < ?)
         ORDER BY started_at DESC, execution_id DESC LIMIT ?`,
        ...given.map(([, value]) => value),
        at,
        at,
        id,
        limit,
      )
      .toArray()
      .map((row) => storedEntry(String(row['entry'])));
  }
}
