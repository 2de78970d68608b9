/** Which sandboxes this machine can test. Where the tests are meant to be complete, a missing one is a failure. */
import { spawnSync } from 'node:child_process';

import type { SandboxLevel } from '../../sandbox/sandbox.ts';

const complete = process.env['CI'] === 'true';
const hasBubblewrap = spawnSync('bwrap', ['--version'], { stdio: 'ignore' }).status === 0;

/** Why the tests of a level are skipped; null = they run. */
export function reasonToSkip(level: SandboxLevel): string | null {
  if (complete) return null;
  if (level === 'bubblewrap' && !hasBubblewrap) return 'bubblewrap is not installed';
  if (level === 'process' && process.platform === 'win32') return 'needs a shell and python3';
  return null;
}
