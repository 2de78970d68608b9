/**
 * Programs of the machine that tests call. Not every machine has them: the tests are skipped there. With CI=true none is
 * skipped: `.ci/run` installs the programs, and a missing one is a failure.
 */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** What the commands of the documentation need. */
export const PAGE_PROGRAMS = ['bash', 'cat', 'curl', 'grep', 'head', 'tail'] as const;

/**
 * @returns whether a test that calls these programs is skipped
 * @example test.skipIf(lacks('python3'))('Python reads the archive', …)
 */
export function lacks(...programs: readonly string[]): boolean {
  return process.env['CI'] !== 'true' && !programs.every(isInstalled);
}

function isInstalled(program: string): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
