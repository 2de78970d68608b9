/** Files that a command line names. */
import { readFileSync } from 'node:fs';
import { messageOf } from '../src/domain/errors.ts';
import { UsageError } from './command.ts';
import { visible } from './terminal/visible.ts';

/**
 * @param path `-` is the standard input
 * @throws UsageError if it cannot be read
 */
export function readInput(path: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8');
  } catch (fault) {
    const isAbsent = fault instanceof Error && 'code' in fault && fault.code === 'ENOENT';
    const why = isAbsent ? 'no such file' : messageOf(fault);
    throw new UsageError(`${visible(path)}: ${why}`, { cause: fault });
  }
}
