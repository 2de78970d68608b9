/**
 * Passes a job to a waiting container through standard input. A preloaded Python gets JSON; otherwise busybox unpacks an
 * archive and runs the program.
 */
import fs from 'node:fs';

import { archiveOf, WORKSPACE } from './given-files.ts';
import { deadlineOf, LOADED_PYTHON, loadedJob } from './loaded-python.ts';
import type { ImageLaunch, Interpreter, Launch } from './sandbox.ts';
import {
  baseEnvironment,
  commandOf,
  directoryOf,
  PROGRAM_FILE,
  quoted,
  workspaceVariables,
} from './system-programs.ts';

const INPUTS = '/cortex/inputs.json';
const ENVIRONMENT = baseEnvironment('/work', '/tmp', INPUTS);

const SHELL_GUEST = fs.readFileSync(new URL('../guest/waiting.sh', import.meta.url), 'utf8');

/** Mount point of the guest's busybox, for images without one. */
export const TOOLS = '/cortex-guest';

/** Command of a container that waits for a job of an interpreter. */
export function waitingFor(interpreter: Interpreter): string[] {
  return interpreter === 'python3'
    ? ['python3', ...LOADED_PYTHON]
    : ['/bin/busybox', 'sh', '-c', SHELL_GUEST, '/bin/busybox'];
}

/** The same for a foreign image. */
export function waitingInImage(): string[] {
  const busybox = `${TOOLS}/busybox`;
  return [busybox, 'sh', '-c', SHELL_GUEST, busybox];
}

/**
 * Encodes a job for the waiting container.
 *
 * @param marker precedes the archive of the workspace on standard output; see `splitAt`
 */
export function jobBytes(launch: Launch, marker: string): AsyncIterable<Uint8Array> {
  if (launch.interpreter === 'python3') return loadedJob(launch, { marker, channel: null });
  const program = `/cortex/${PROGRAM_FILE[launch.interpreter]}`;
  const command = commandOf(launch, {
    program,
    harness: '',
    python: 'python3',
    shell: '/bin/sh',
    node: '/usr/bin/node',
  });
  const variables = assignments({ ...ENVIRONMENT, ...launch.env, ...workspaceVariables(launch) });
  return archive(
    { [PROGRAM_FILE[launch.interpreter]]: launch.source },
    launch,
    ['/bin/busybox', 'env', '-i', ...variables, ...command],
    { directory: directoryOf(launch), readOnly: launch.workspace === undefined ? ['/cortex', WORKSPACE] : ['/cortex'] },
    marker,
  );
}

/**
 * Encodes a job for a program of an image. Its command is a shell command, so `$name` is the input of that name, and the
 * arguments are appended verbatim.
 *
 * @param own the image's entry point and command, for a job without a command
 */
export function imageJobBytes(launch: ImageLaunch, own: readonly string[], marker: string): AsyncIterable<Uint8Array> {
  const busybox = `${TOOLS}/busybox`;
  // prefer the image's own shell, which its users expect
  const shell = [busybox, 'sh', '-c', `[ -x /bin/sh ] && exec /bin/sh "$@"; exec ${busybox} sh "$@"`, 'sh'];
  const command =
    launch.command === null
      ? [...own, ...launch.args]
      : [...shell, '-c', launch.args.length === 0 ? launch.command : `${launch.command} "$@"`, 'sh', ...launch.args];
  const { PATH: _, ...environment } = ENVIRONMENT;
  const variables = assignments({ ...environment, ...launch.env, ...workspaceVariables(launch) });
  // without a workspace, the folder may be one of the image
  const place = { directory: launch.directory ?? '/work', readOnly: ['/cortex'] };
  return archive({}, launch, [busybox, 'env', ...variables, ...command], place, marker);
}

/** An archive of the job's files and those of its workspace, with `start`, which holds the command. */
function archive(
  files: Readonly<Record<string, string>>,
  { inputsJson, stdin, timeoutMs, workspace }: Launch | ImageLaunch,
  command: readonly string[],
  { directory, readOnly }: { readonly directory: string; readonly readOnly: readonly string[] },
  marker: string,
): AsyncIterable<Uint8Array> {
  const start = [
    `deadline=${deadlineOf(timeoutMs)}`,
    `directory=${directory}`,
    `folders='${readOnly.join(' ')}'`,
    // the shell cannot hold the NUL that begins it
    ...(workspace === undefined ? [] : [`marker=${marker.slice(1)}`]),
    `set -- ${command.map(quoted).join(' ')}`,
  ];
  const all = { ...files, 'inputs.json': inputsJson, stdin, start: `${start.join('\n')}\n` };
  return archiveOf(
    Object.fromEntries(Object.entries(all).map(([name, text]) => [`cortex/${name}`, text])),
    workspace?.files ?? null,
  );
}

function assignments(variables: Readonly<Record<string, string>>): string[] {
  return Object.entries(variables).map(([name, value]) => `${name}=${value}`);
}
