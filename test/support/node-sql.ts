/**
 * node:sqlite as the journal's database, whose `sync` can be delayed, failed and counted; and a connection that ends with
 * its host.
 */
import type { SqlDatabase, SqlRow, SqlValue } from '../../src/domain/ports/storage.ts';
import { openNodeSql as openDatabase } from '../../testing/node-sql.ts';

export interface NodeSql extends SqlDatabase {
  syncs: number;
  /** Awaited by `sync`; replace it to delay or fail a sync. */
  onSync: () => Promise<void>;
  /** The reported size of the database; replace it to make the database full. */
  sizeBytes: () => number;
}

/** @param path of a file; default: in memory */
export function openNodeSql(path?: string): NodeSql {
  const sql: NodeSql = {
    ...openDatabase(path),
    syncs: 0,
    onSync: async () => undefined,
    async sync() {
      sql.syncs += 1;
      await sql.onSync();
    },
  };
  return sql;
}

/** Number of events in a row that is written: its last column has the ones before its own. */
function eventsOfRow(row: readonly unknown[]): number {
  const earlier = row.at(-1);
  return 1 + (typeof earlier === 'string' ? (JSON.parse(earlier) as unknown[]).length : 0);
}

/** The loss of a host at the nth event that is written, counted from 1 (J2). */
export interface CrashPoint {
  readonly atAppend: number;
  /** `torn`: earlier writes persist. `unsynced`: writes that no sync has covered are lost. */
  readonly leaves: 'torn' | 'unsynced';
}

/** One host's connection to a database that outlives it. After the crash it writes nothing. */
export class CrashingSql implements NodeSql {
  readonly #disk: NodeSql;
  readonly #crash: CrashPoint | null;
  #open = false;
  #within = false;
  appends = 0;
  crashed = false;
  syncs = 0;
  onSync = async (): Promise<void> => undefined;
  sizeBytes = (): number => this.#disk.sizeBytes();

  constructor(disk: NodeSql, crash: CrashPoint | null) {
    this.#disk = disk;
    this.#crash = crash;
  }

  exec(text: string, ...parameters: SqlValue[]): SqlRow[] {
    if (this.crashed) throw new Error('this host is gone');
    if (/^\s*INSERT INTO events/.test(text)) {
      const rows = text.includes('json_each') ? (JSON.parse(String(parameters[0])) as unknown[][]) : [parameters];
      const left = (this.#crash?.atAppend ?? Infinity) - this.appends - 1;
      const written = rows.map(eventsOfRow);
      const count = written.reduce((sum, events) => sum + events, 0);
      this.appends += count;
      if (left < count) {
        // The first rows of a batch may have been written, a row completely or not at all.
        let whole = 0;
        for (let events = 0; events + (written[whole] ?? 0) <= left; whole += 1) events += written[whole] ?? 0;
        if (whole > 0 && this.#crash?.leaves === 'torn') this.#disk.exec(text, JSON.stringify(rows.slice(0, whole)));
        this.#die();
        throw new Error('this host is gone');
      }
    }
    if (!this.#open && !this.#within && this.#crash?.leaves === 'unsynced' && !/^\s*SELECT/i.test(text)) {
      this.#disk.exec('BEGIN');
      this.#open = true;
    }
    return this.#disk.exec(text, ...parameters);
  }

  script(text: string): void {
    if (this.crashed) throw new Error('this host is gone');
    this.#disk.script(text);
  }

  transaction<T>(body: () => T): T {
    if (this.crashed) throw new Error('this host is gone');
    this.#commit();
    this.#within = true;
    try {
      return this.#disk.transaction(body);
    } finally {
      this.#within = false;
    }
  }

  async sync(): Promise<void> {
    this.syncs += 1;
    // Nothing is durable at once, so that code that does not wait for it fails.
    await Promise.resolve();
    if (this.crashed) return await new Promise(() => undefined);
    this.#commit();
    await this.onSync();
  }

  #commit(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#disk.exec('COMMIT');
  }

  #die(): void {
    this.crashed = true;
    if (!this.#open) return;
    this.#open = false;
    this.#disk.exec('ROLLBACK');
  }

  /** The host is lost now. */
  kill(): void {
    if (!this.crashed) this.#die();
  }
}
