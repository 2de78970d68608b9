/**
 * The statements that fail (`statement`): one write or read fails, and its host continues. The platform reports such a failure
 * of a single statement, for example of one that exceeds a limit, and of storage that does not answer for a moment.
 */
import type { SqlDatabase } from '../../../src/domain/ports/storage.ts';
import type { Fault } from '../history.ts';
import { DiskFailure } from './disk-failure.ts';

type StatementFault = Extract<Fault, { type: 'statement' }>;

interface Awaited {
  readonly fault: StatementFault;
  readonly names: RegExp | null;
  count: number;
}

export class FailingStatements {
  readonly #awaited: readonly Awaited[];
  readonly #isCalm: () => boolean;
  /** Faults that have happened. */
  happened = 0;

  /** @param isCalm no fault happens any more */
  constructor(faults: readonly Fault[], isCalm: () => boolean) {
    this.#isCalm = isCalm;
    this.#awaited = faults.flatMap((fault) =>
      fault.type === 'statement'
        ? [{ fault, names: fault.names === null ? null : new RegExp(`\\b${fault.names}\\b`), count: 0 }]
        : [],
    );
  }

  /** Called at each statement. */
  fails(where: StatementFault['in'], does: StatementFault['does'], text: string): boolean {
    let fails = false;
    for (const one of this.#awaited) {
      if (one.fault.in !== where || one.fault.does !== does || one.names?.test(text) === false || this.#isCalm())
        continue;
      one.count += 1;
      if (one.count === one.fault.statement) fails = true;
    }
    if (fails) this.happened += 1;
    return fails;
  }

  /** A database whose writes may fail. @param isUsed whether its statements count */
  over(sql: SqlDatabase, where: StatementFault['in'], isUsed: () => boolean = () => true): SqlDatabase {
    const meet = (text: string): void => {
      if (isUsed() && this.fails(where, 'write', text)) throw new DiskFailure('a write failed');
    };
    return {
      ...sql,
      exec: (text, ...parameters) => {
        if (!/^\s*SELECT/i.test(text)) meet(text);
        return sql.exec(text, ...parameters);
      },
      script: (text) => {
        meet(text);
        sql.script(text);
      },
      transaction: (body) =>
        sql.transaction(() => {
          const value = body();
          meet('transaction');
          return value;
        }),
    };
  }
}
