/** The folder for temporary files of the Worker's programs, in the state folder. */
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** The name of the folder. */
export const TEMPORARY = 'temporary';

/** Folders of wrangler's local platform: it removes them when it stops, but not if it is killed. */
const LEFT_BEHIND = /^miniflare-/;

/**
 * Makes the folder, without what killed Workers have left in it. No Worker with this state folder may be running.
 *
 * @returns environment variables that name it, for every operating system
 */
export function temporaryFolder(stateDir: string): Readonly<Record<'TMPDIR' | 'TMP' | 'TEMP', string>> {
  const folder = join(stateDir, TEMPORARY);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(folder)) {
    if (LEFT_BEHIND.test(name)) rmSync(join(folder, name), { recursive: true, force: true });
  }
  return { TMPDIR: folder, TMP: folder, TEMP: folder };
}
