/** Which sandboxes this machine can test. Where the tests are meant to be complete, a missing one is a failure. */
import { spawnSync } from 'node:child_process';

import type { SandboxLevel } from '../../sandbox/sandbox.ts';

export interface TestedLevel {
  readonly level: SandboxLevel;
  /** Why its tests are skipped; null = they run. */
  readonly skip: string | null;
}

const complete = process.env['CI'] === 'true';

export const hasBubblewrap = spawnSync('bwrap', ['--version'], { stdio: 'ignore' }).status === 0;
const noBubblewrap = hasBubblewrap || complete ? null : 'bubblewrap is not installed';

export const LEVELS: readonly TestedLevel[] = [
  { level: 'bubblewrap', skip: noBubblewrap },
  { level: 'wasm', skip: null },
  { level: 'process', skip: process.platform === 'win32' ? 'needs a shell and python3' : null },
];
