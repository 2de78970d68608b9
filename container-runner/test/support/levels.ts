/** The sandbox levels that this machine can test. With CI=true, a missing one is a failure. */
import { connectEngine } from '../../sandbox/docker-engine.ts';
import type { SandboxLevel } from '../../sandbox/sandbox.ts';
import { lacks } from '../../../test/support/programs.ts';

const complete = process.env['CI'] === 'true';
const hasBubblewrap = !lacks('bwrap');
/** `npm test` starts an engine if one is installed and none runs, and passes its address here. */
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
  if (level === 'process' && (process.platform === 'win32' || lacks('python3', 'sleep')))
    return 'needs python3 and the usual programs of a shell';
  return null;
}

/** A sandbox that starts fast and needs no engine, for tests of everything except sandboxes. */
export const LIGHT_SANDBOX = { RUNNER_SANDBOX: hasBubblewrap ? 'bubblewrap' : 'wasm', RUNNER_WARM: '1' };
