/** Files that a command writes its result to. */
import { closeSync, openSync, rmSync, statSync } from 'node:fs';
import { messageOf } from '../src/domain/errors.ts';
import { UsageError } from './command.ts';
import { requireTarget } from './project/real-path.ts';
import { visible } from './terminal/visible.ts';

/**
 * Checks that a file can be written, before the work whose result it gets. An existing file keeps its content.
 *
 * @param option for the error: `--out`
 * @throws UsageError if it cannot be written
 */
export function requireWritable(option: string, path: string): void {
  try {
    requireTarget(path);
    const found = statSync(path, { throwIfNoEntry: false });
    // Opening a pipe would wait for its reader.
    if (found !== undefined && !found.isFile() && !found.isDirectory()) return;
    closeSync(openSync(path, 'a'));
    if (found === undefined) rmSync(path);
  } catch (fault) {
    throw new UsageError(`${option} "${visible(path)}" cannot be written: ${messageOf(fault)}`, { cause: fault });
  }
}
