/**
 * One shard of the lists of a namespace: sessions (C6), executions (H1), open approvals (J8). Written by the sessions after
 * their answers, so it may lag behind them.
 */
import { DurableObject } from 'cloudflare:workers';
import type { DirectoryPage, DirectoryRecord, DirectoryRows } from '../../domain/directory.ts';
import type { ExecutionRows, ExecutionsPage } from '../../domain/execution.ts';
import type { ApprovalsPage, OpenApproval } from '../../engine/actions/approval-list.ts';
import { ApprovalTable } from '../../policies/approval-table.ts';
import { DirectoryShard } from '../../policies/directory-shard.ts';
import { readSettings } from '../../settings/settings.ts';
import type { DirectoryRpc, Env } from '../env.ts';
import { platformClock } from '../platform.ts';
import { durableSql } from '../sql-storage.ts';

export class DirectoryObject extends DurableObject<Env> implements DirectoryRpc {
  readonly #sql = durableSql(this.ctx.storage);
  readonly #shard = new DirectoryShard(this.#sql, platformClock.now, () => readSettings(this.env).sessionExpiryMs);
  readonly #approvals = new ApprovalTable<OpenApproval>(this.#sql);

  write(record: DirectoryRecord): void {
    this.#shard.write(record);
  }

  forget(sessionId: string, incarnation: string): void {
    this.#shard.forget(sessionId, incarnation);
  }

  list(page: DirectoryPage): DirectoryRows {
    return this.#shard.list(page);
  }

  executions(page: ExecutionsPage): ExecutionRows {
    return this.#shard.executions(page);
  }

  keepApprovals(sessionId: string, approvals: readonly OpenApproval[]): void {
    this.#approvals.keep(sessionId, approvals);
  }

  settleApprovals(ids: readonly string[]): void {
    this.#approvals.settle(ids);
  }

  approvals(page: ApprovalsPage): OpenApproval[] {
    return this.#approvals.list(page);
  }
}
