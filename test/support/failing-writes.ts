/** A database of which one statement that writes fails, while its host lives on. */
import type { SqlDatabase } from '../../src/domain/ports/storage.ts';
import { withStatements } from '../journal/journal-kit.ts';

export interface FailingWrites {
  readonly sql: SqlDatabase;
  /** From here on, the nth statement that writes fails, counted from 1. */
  readonly failAt: (nth: number) => void;
}

export function failingWrites(db: SqlDatabase): FailingWrites {
  let left = Infinity;
  const sql = withStatements(db, (statement) => {
    if (/^\s*SELECT/i.test(statement)) return;
    left -= 1;
    if (left === 0) throw new Error('the disk is full');
  });
  return { sql, failAt: (nth) => (left = nth) };
}

/**
 * Does the same once for each statement that writes, which fails: `observe` sees what was there before.
 *
 * @returns how many statements have failed
 */
export function failEach<T>(
  prepare: () => T & FailingWrites,
  change: (kit: T) => unknown,
  observe: (kit: T) => unknown,
): number {
  for (let nth = 1; ; nth += 1) {
    const kit = prepare();
    const before = JSON.stringify(observe(kit));
    kit.failAt(nth);
    const failed = attempt(() => change(kit));
    kit.failAt(Infinity);
    if (!failed) return nth - 1;
    const after = JSON.stringify(observe(kit));
    if (after !== before) throw new Error(`statement ${nth} failed, and its change is there in part: ${after}`);
  }
}

function attempt(work: () => unknown): boolean {
  try {
    work();
    return false;
  } catch {
    return true;
  }
}
