/** A preloaded Python of the system, in a container or a namespace; it reads its job as JSON. */
import fs from 'node:fs';

import { limits } from '../limits.ts';
import type { Launch } from './sandbox.ts';
import { baseEnvironment, HARNESS, PROGRAM_FILE } from './system-programs.ts';

const PROGRAM = `/cortex/${PROGRAM_FILE.python3}`;
const INPUTS = '/cortex/inputs.json';
const STDIN = '/cortex/stdin';
/** Time after its timeout at which a job ends if the runner is gone. */
const DEADLINE_MS = 30_000;
const SOURCE =
  fs.readFileSync(HARNESS, 'utf8').replace(/^if __name__ [^]*/m, '') +
  fs.readFileSync(new URL('../guest/waiting.py', import.meta.url), 'utf8');

/** Arguments of `python3`. Isolated: no variables, no user packages, no current directory in the module path. */
export const LOADED_PYTHON: readonly string[] = ['-I', '-X', 'utf8', '-c', SOURCE];

/** Encodes the job for the preloaded interpreter. */
export function loadedJob(launch: Launch): string {
  return JSON.stringify({
    entry: launch.entry,
    program: PROGRAM,
    inputs: INPUTS,
    stdin: STDIN,
    files: { [PROGRAM]: launch.source, [INPUTS]: launch.inputsJson, [STDIN]: launch.stdin },
    args: launch.args,
    env: { ...baseEnvironment('/work', '/tmp', INPUTS), ...launch.env },
    deadline: deadlineOf(launch.timeoutMs),
  });
}

/** Seconds after which a guest ends itself, in case the runner is gone. */
export function deadlineOf(timeoutMs: number): number {
  return Math.ceil((timeoutMs + limits.killGraceMs + DEADLINE_MS) / 1_000);
}
