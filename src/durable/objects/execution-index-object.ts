/**
 * What earlier versions listed about a namespace in one object: executions and open approvals (H1, J8). Sessions write to the
 * shards of the directory; this object moves what it has to them when it is read or a session is deleted.
 */
import { DurableObject } from 'cloudflare:workers';
import { shardOf } from '../../domain/directory.ts';
import type { ExecutionEntry, ExecutionsPage } from '../../domain/execution.ts';
import { limits } from '../../domain/limits.ts';
import type { ApprovalsPage, OpenApproval } from '../../engine/actions/approval-list.ts';
import { runIdOf } from '../../journal/run-id.ts';
import { ApprovalTable } from '../../policies/approval-table.ts';
import { readSettings } from '../../settings/settings.ts';
import type { EarlierIndexRpc, EarlierPage, Env } from '../env.ts';
import { platformClock } from '../platform.ts';
import { durableSql } from '../sql-storage.ts';

/** The kind of an entry; entries of earlier versions have none, and are executions. */
const KIND = `COALESCE(entry ->> '$.kind', 'execution')`;

/** Entries of earlier versions have fewer members. */
function storedEntry(json: string): ExecutionEntry {
  const entry = JSON.parse(json) as Omit<ExecutionEntry, 'kind' | 'run_id' | 'error'> & Partial<ExecutionEntry>;
  return { run_id: entry.execution_id, kind: 'execution', error: null, ...entry };
}

/** Storage key of the namespace, as an object: null is a namespace. */
const OWNER = 'owner';

export class ExecutionIndexObject extends DurableObject<Env> implements EarlierIndexRpc {
  readonly #approvals: ApprovalTable<OpenApproval>;

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
    this.#approvals = new ApprovalTable(durableSql(ctx.storage));
  }

  keepApprovals(sessionId: string, approvals: readonly OpenApproval[]): void {
    this.#approvals.keep(sessionId, approvals);
  }

  settleApprovals(ids: readonly string[]): void {
    this.#approvals.settle(ids);
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

  async listEarlier(owner: string | null, page: ExecutionsPage): Promise<EarlierPage<ExecutionEntry>> {
    const entries = this.#list(page);
    return { entries, isEmpty: await this.#moveSoon(owner) };
  }

  async approvalsEarlier(owner: string | null, page: ApprovalsPage): Promise<EarlierPage<OpenApproval>> {
    const entries = this.#approvals.list(page);
    return { entries, isEmpty: await this.#moveSoon(owner) };
  }

  async forgetEarlier(owner: string | null, sessionId: string, incarnation: string): Promise<boolean> {
    this.forgetSession(sessionId, incarnation === '' ? null : incarnation);
    return await this.#moveSoon(owner);
  }

  /** Moves everything with an alarm, which repeats what fails. @returns whether nothing is left */
  async #moveSoon(owner: string | null): Promise<boolean> {
    const { storage } = this.ctx;
    if (this.#isEmpty()) return true;
    storage.kv.put(OWNER, { owner });
    if ((await storage.getAlarm()) === null) await storage.setAlarm(platformClock.now());
    return false;
  }

  #isEmpty(): boolean {
    const sql = `SELECT EXISTS (SELECT 1 FROM executions) OR EXISTS (SELECT 1 FROM approvals) AS some`;
    return this.ctx.storage.sql.exec(sql).one()['some'] === 0;
  }

  /** Moves a part to the shards. An entry is deleted here once its shard has it. */
  override async alarm(): Promise<void> {
    const { sql, kv } = this.ctx.storage;
    const { owner } = kv.get<{ readonly owner: string | null }>(OWNER) ?? { owner: null };
    const part = sql.exec(`SELECT entry FROM executions LIMIT ?`, limits.movedEntries).toArray();
    const runs = part.map((row) => storedEntry(String(row['entry'])));
    const approvals = this.#approvals.list({ limit: limits.movedEntries, after: null });
    const shardFor = ({ session_id: id }: ExecutionEntry | OpenApproval): string => shardOf(owner, id);
    const byShard = { runs: Map.groupBy(runs, shardFor), approvals: Map.groupBy(approvals, shardFor) };
    const names = new Set([...byShard.runs.keys(), ...byShard.approvals.keys()]);
    await Promise.all(
      [...names].map((name) =>
        this.env.DIRECTORY.getByName(name).takeEarlier(byShard.runs.get(name) ?? [], byShard.approvals.get(name) ?? []),
      ),
    );
    // An entry that a session of an earlier version has changed meanwhile is moved again.
    for (const [at, { execution_id: id }] of runs.entries()) {
      sql.exec(`DELETE FROM executions WHERE execution_id = ? AND entry = ?`, id, part[at]?.['entry']);
    }
    this.#approvals.settle(approvals.map(({ approval_id: id }) => id));
    if (!this.#isEmpty()) await this.ctx.storage.setAlarm(platformClock.now());
  }

  /** Newest first; ties are ordered by id. */
  #list({ limit, before, status, kind }: ExecutionsPage): ExecutionEntry[] {
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
