import type { SqlDatabase } from '../../src/domain/ports/storage.ts';
import { OPTIONAL_TABLES } from '../../src/journal/optional-tables.ts';

/** Creates the tables that a session creates on first use, so that a test can read them. */
export function createOptionalTables(db: Pick<SqlDatabase, 'script'>): void {
  for (const script of Object.values(OPTIONAL_TABLES)) db.script(script);
}
