/** Which sandboxes this machine can test. Where the tests are meant to be complete, a missing one is a failure. */
import { spawnSync } from 'node:child_process';

import { connectEngine } from '../../sandbox/docker-engine.ts';
import type { SandboxLevel } from '../../sandbox/sandbox.ts';

const complete = process.env['CI'] === 'true';
const hasBubblewrap = spawnSync('bwrap', ['--version'], { stdio: 'ignore' }).status === 0;
/** `npm test` starts an engine where one is installed and none runs, and says here where it listens. */
export const dockerSocket = process.env['RUNNER_DOCKER'] ?? null;
const noEngine = await connectEngine(dockerSocket).then(
  () => null,
  (fault: unknown) => String(fault instanceof Error ? fault.message : fault),
);

/** Why the tests of a level are skipped; null = they run. */
export function reasonToSkip(level: SandboxLevel): string | null {
  if (complete) return null;
  if (level === 'docker') return noEngine;
  if (level === 'bubblewrap' && !hasBubblewrap) return 'bubblewrap is not installed';
  if (level === 'process' && process.platform === 'win32') return 'needs a shell and python3';
  return null;
}

/** A sandbox that starts fast and holds nothing in an engine, for tests of anything but sandboxes. */
export const LIGHT_SANDBOX = { RUNNER_SANDBOX: hasBubblewrap ? 'bubblewrap' : 'wasm', RUNNER_WARM: '1' };
