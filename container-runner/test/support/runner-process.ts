/** The runner as a process of its own, started as in production. */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import { expect } from 'vitest';

import { compileCache } from './compile-cache.ts';
import { withSnapshot } from './python-snapshot.ts';
import { SECRET } from './test-runner.ts';
import { eventually } from '../../../test/support/eventually.ts';

export const MAIN = fileURLToPath(new URL('../../main.ts', import.meta.url));

/** What the runner prints when it serves. */
interface ReadyLine {
  readonly url: string;
  readonly sandbox: Readonly<Record<string, string | null>>;
}

export interface RunnerProcess {
  readonly child: ChildProcess;
  /** Exit code; null after a signal. */
  readonly ended: Promise<number | null>;
  out(): string;
  err(): string;
  /** The line that it prints when it serves. */
  ready(): Promise<ReadyLine>;
}

/** @param env in addition to a free port, the tests' secret and one warm interpreter */
export function launchRunner(stateDir: string, env: Readonly<Record<string, string>>): RunnerProcess {
  if (env['RUNNER_SANDBOX'] === 'wasm') withSnapshot(stateDir);
  return observed(
    spawn(process.execPath, [MAIN], {
      env: {
        PATH: process.env['PATH'] ?? '',
        ...compileCache(),
        CORTEX_STATE_DIR: stateDir,
        RUNNER_PORT: '0',
        RUNNER_SECRET: SECRET,
        RUNNER_WARM: '1',
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    }),
  );
}

/** A process that becomes the runner: what it prints, and its end. */
export function observed(child: ChildProcess): RunnerProcess {
  let out = '';
  let err = '';
  child.stdout?.on('data', (chunk) => (out += String(chunk)));
  child.stderr?.on('data', (chunk) => (err += String(chunk)));
  const ended = new Promise<number | null>((resolve) => {
    child.once('exit', resolve);
  });
  return {
    child,
    ended,
    out: () => out,
    err: () => err,
    async ready() {
      await eventually(() => expect(out).toContain('\n'));
      return JSON.parse(out) as ReadyLine;
    },
  };
}
