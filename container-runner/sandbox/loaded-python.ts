/** A preloaded Python of the system, in a container or a namespace; it reads its job as JSON, and then its files. */
import fs from 'node:fs';

import { limits } from '../limits.ts';
import { contents, guestFiles, WORKSPACE } from './given-files.ts';
import type { Launch } from './sandbox.ts';
import { baseEnvironment, directoryOf, HARNESS, PROGRAM_FILE, workspaceVariables } from './system-programs.ts';

const PROGRAM = `/cortex/${PROGRAM_FILE.python3}`;
const INPUTS = '/cortex/inputs.json';
const STDIN = '/cortex/stdin';
/** Time after its timeout at which a job ends if the runner is gone. */
const DEADLINE_MS = 30_000;
const SOURCE =
  fs.readFileSync(HARNESS, 'utf8').replace(/^if __name__ [^]*/m, '') +
  ['workspace.py', 'waiting.py']
    .map((name) => fs.readFileSync(new URL(`../guest/${name}`, import.meta.url), 'utf8'))
    .join('\n');

/** Arguments of `python3`. Isolated: no variables, no user packages, no current directory in the module path. */
export const LOADED_PYTHON: readonly string[] = ['-I', '-B', '-X', 'utf8', '-c', SOURCE];

/** Where the guest writes what the program left: its standard output after a marker, or a descriptor of its own. */
export interface LoadedOutput {
  readonly marker: string;
  readonly channel: number | null;
}

/** Encodes the job for the preloaded interpreter. */
export async function* loadedJob(launch: Launch, { marker, channel }: LoadedOutput): AsyncGenerator<Uint8Array> {
  const { workspace } = launch;
  const job = JSON.stringify({
    entry: launch.entry,
    program: PROGRAM,
    inputs: INPUTS,
    stdin: STDIN,
    files: { [PROGRAM]: launch.source, [INPUTS]: launch.inputsJson, [STDIN]: launch.stdin },
    args: launch.args,
    env: { ...baseEnvironment('/work', '/tmp', INPUTS), ...launch.env, ...workspaceVariables(launch) },
    directory: directoryOf(launch),
    deadline: deadlineOf(launch.timeoutMs),
    marker,
    channel,
    folder: WORKSPACE,
    workspace: workspace === undefined ? null : guestFiles(workspace.files),
  });
  const bytes = Buffer.from(job);
  yield Buffer.concat([Buffer.from(`${bytes.length}\n`), bytes]);
  if (workspace !== undefined) yield* contents(workspace.files);
}

/** Seconds after which a guest ends itself, in case the runner is gone. */
export function deadlineOf(timeoutMs: number): number {
  return Math.ceil((timeoutMs + limits.killGraceMs + DEADLINE_MS) / 1_000);
}
