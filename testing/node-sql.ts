/** node:sqlite as the journal's database; `sync` can be delayed, failed and counted. */
import { DatabaseSync } from 'node:sqlite';
import type { StatementSync } from 'node:sqlite';
import type { SqlDatabase, SqlRow, SqlValue } from '../src/domain/ports/storage.ts';

export interface NodeSql extends SqlDatabase {
  syncs: number;
  /** Awaited by `sync`; replace it to delay or fail a sync. */
  onSync: () => Promise<void>;
  /** The reported size of the database; replace it to make the database full. */
  sizeBytes: () => number;
}

/** @param path of a file; default: in memory */
export function openNodeSql(path = ':memory:'): NodeSql {
  const db = new DatabaseSync(path);
  // Preparing a statement is more expensive than most executions.
  const statements = new Map<string, StatementSync>();
  const prepared = (text: string): StatementSync => {
    let statement = statements.get(text);
    if (statement === undefined) {
      statement = db.prepare(text);
      statements.set(text, statement);
    }
    return statement;
  };
  const sql: NodeSql = {
    syncs: 0,
    onSync: async () => undefined,
    exec(text: string, ...parameters: SqlValue[]): SqlRow[] {
      return prepared(text).all(...parameters) as SqlRow[];
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
    sizeBytes: () =>
      Number(
        (
          db
            .prepare('SELECT page_count * page_size AS size FROM pragma_page_count(), pragma_page_size()')
            .get() as SqlRow
        )['size'],
      ),
  };
  return sql;
}
