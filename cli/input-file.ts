/** Files that a command line names. */
import { readFileSync } from 'node:fs';
import { messageOf } from '../src/domain/errors.ts';
import { UsageError } from './command.ts';
import { requireReadable } from './project/real-path.ts';
import { visible } from './terminal/visible.ts';

/**
 * The text without the byte order mark that some editors and shells write.
 *
 * @param path `-` is the standard input
 * @throws UsageError if it cannot be read
 */
export function readInput(path: string): string {
  return named(path, () => {
    if (path !== '-') requireReadable(path);
    return readFileSync(path === '-' ? 0 : path, 'utf8').replace(/^\uFEFF/, '');
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
