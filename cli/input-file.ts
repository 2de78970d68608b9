/** Files that a command line names. */
import { readFileSync } from 'node:fs';
import { messageOf } from '../src/domain/errors.ts';
import { UsageError } from './command.ts';
import { requireReadable } from './project/real-path.ts';
import { visible } from './terminal/visible.ts';

/**
 * @param path `-` is the standard input
 * @throws UsageError if it cannot be read
 */
export function readInput(path: string): string {
  return named(path, () => {
    if (path === '-') return readFileSync(0, 'utf8');
    requireReadable(path);
    return readFileSync(path, 'utf8');
  });
}

/** @throws UsageError for a file that may not be read */
export function requireInput(path: string): void {
  named(path, () => requireReadable(path));
}

function named<T>(path: string, act: () => T): T {
  try {
    return act();
  } catch (fault) {
    throw new UsageError(`${visible(path)}: ${messageOf(fault)}`, { cause: fault });
  }
}
