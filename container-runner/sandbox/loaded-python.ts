/** A Python of the system that is loaded ahead of time, in a container or a namespace, and takes its job as JSON. */
import fs from 'node:fs';

import { limits } from '../limits.ts';
import type { Launch } from './sandbox.ts';
import { baseEnvironment, HARNESS, PROGRAM_FILE } from './system-programs.ts';

const PROGRAM = `/cortex/${PROGRAM_FILE.python3}`;
const INPUTS = '/cortex/inputs.json';
const STDIN = '/cortex/stdin';
/** How long after its time limit a job ends whose runner is gone. */
const DEADLINE_MS = 30_000;
const SOURCE =
  fs.readFileSync(HARNESS, 'utf8').replace(/^if __name__ [^]*/m, '') +
  fs.readFileSync(new URL('../guest/waiting.py', import.meta.url), 'utf8');

/** The words behind `python3`. Isolated: no variables, no user's packages, no current directory on the module path. */
export const LOADED_PYTHON: readonly string[] = ['-I', '-X', 'utf8', '-c', SOURCE];

/** The job as the loaded interpreter reads it from its standard input, to the end. */
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

/** Seconds after which a guest ends by itself, should nobody else be there to end it. */
export function deadlineOf(timeoutMs: number): number {
  return Math.ceil((timeoutMs + limits.killGraceMs + DEADLINE_MS) / 1_000);
}
