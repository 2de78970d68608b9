/** node:sqlite as the journal's database. */
import { DatabaseSync } from 'node:sqlite';
import type { StatementSync } from 'node:sqlite';
import type { SqlDatabase, SqlRow, SqlValue } from '../src/domain/ports/storage.ts';

/** @param path of a file; default: in memory */
export function openNodeSql(path = ':memory:'): SqlDatabase & { readonly close: () => void } {
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
  return {
    exec(text: string, ...parameters: SqlValue[]): SqlRow[] {
      return prepared(text).all(...parameters) as SqlRow[];
    },
    script: (text: string) => db.exec(text),
    close: () => db.close(),
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
    sync: async () => undefined,
    sizeBytes: () =>
      Number(
        (
          db
            .prepare('SELECT page_count * page_size AS size FROM pragma_page_count(), pragma_page_size()')
            .get() as SqlRow
        )['size'],
      ),
  };
}
