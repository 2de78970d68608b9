/** node:sqlite as the journal's database; `sync` can be slowed, failed and counted. */
import { DatabaseSync } from 'node:sqlite';
import type { SqlDatabase, SqlRow, SqlValue } from '../../src/domain/ports.ts';

export interface NodeSql extends SqlDatabase {
  syncs: number;
  /** What `sync` waits for; replace it to slow a sync down or to fail it. */
  onSync: () => Promise<void>;
}

export function openNodeSql(): NodeSql {
  const db = new DatabaseSync(':memory:');
  const sql: NodeSql = {
    syncs: 0,
    onSync: async () => undefined,
    exec(text: string, ...parameters: SqlValue[]): SqlRow[] {
      return db.prepare(text).all(...parameters) as SqlRow[];
    },
    transaction<T>(body: () => T): T {
      db.exec('BEGIN');
      try {
        const value = body();
        db.exec('COMMIT');
        return value;
      } catch (fault) {
        db.exec('ROLLBACK');
        throw fault;
      }
    },
    async sync() {
      sql.syncs += 1;
      await sql.onSync();
    },
  };
  return sql;
}
