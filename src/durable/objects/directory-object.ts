/** One shard of the directory of a namespace's sessions (C6). Written by the sessions, so it may lag behind them. */
import { DurableObject } from 'cloudflare:workers';
import type { DirectoryPage, DirectoryRecord, DirectoryRows } from '../../domain/directory.ts';
import { DirectoryTable } from '../../policies/directory-table.ts';
import type { DirectoryRpc, Env } from '../env.ts';
import { platformClock } from '../platform.ts';
import { durableSql } from '../sql-storage.ts';

export class DirectoryObject extends DurableObject<Env> implements DirectoryRpc {
  readonly #table = new DirectoryTable(durableSql(this.ctx.storage), platformClock.now);

  record(record: DirectoryRecord): void {
    this.#table.record(record);
  }

  forget(sessionId: string, incarnation: string): void {
    this.#table.forget(sessionId, incarnation);
  }

  list(page: DirectoryPage): DirectoryRows {
    return this.#table.list(page);
  }
}
