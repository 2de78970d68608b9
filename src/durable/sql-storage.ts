/** A Durable Object's SQLite as the journal's `SqlDatabase`. */
import type { SqlDatabase, SqlRow, SqlValue } from '../domain/ports/storage.ts';

export function durableSql(storage: DurableObjectStorage): SqlDatabase {
  return {
    exec(sql: string, ...parameters: SqlValue[]): SqlRow[] {
      return storage.sql.exec(sql, ...parameters).toArray() as SqlRow[];
    },
    script(sql: string): void {
      // The platform keeps only the last statement of several prepared.
      storage.sql.exec(sql);
    },
    transaction<T>(body: () => T): T {
      return storage.transactionSync(body);
    },
    sync: () => storage.sync(),
    sizeBytes: () => storage.sql.databaseSize,
  };
}
