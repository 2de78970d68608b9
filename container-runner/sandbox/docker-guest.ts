/**
 * How a job reaches a container that waits for it: over standard input, to its end. A loaded Python
 * takes it as JSON; everything else is unpacked by a busybox and then run.
 */
import fs from 'node:fs';

import { pack } from 'tar-stream';

import type { ImageLaunch, Interpreter, Launch } from './sandbox.ts';
import { deadlineOf, LOADED_PYTHON, loadedJob } from './loaded-python.ts';
import { baseEnvironment, commandOf, PROGRAM_FILE, quoted } from './system-programs.ts';

const INPUTS = '/cortex/inputs.json';
const ENVIRONMENT = baseEnvironment('/work', '/tmp', INPUTS);

const SHELL_GUEST = fs.readFileSync(new URL('../guest/waiting.sh', import.meta.url), 'utf8');

/** Where the guest's own busybox is found in an image that need not have one. */
export const TOOLS = '/cortex-guest';

/** The command of a container that waits for a job of an interpreter. */
export function waitingFor(interpreter: Interpreter): string[] {
  return interpreter === 'python3'
    ? ['python3', ...LOADED_PYTHON]
    : ['/bin/busybox', 'sh', '-c', SHELL_GUEST, '/bin/busybox'];
}

/** The same in an image of somebody else's. */
export function waitingInImage(): string[] {
  const busybox = `${TOOLS}/busybox`;
  return [busybox, 'sh', '-c', SHELL_GUEST, busybox];
}

/** A job as the waiting container reads it. */
export function jobBytes(launch: Launch): Promise<Buffer> | Buffer {
  if (launch.interpreter === 'python3') return Buffer.from(loadedJob(launch));
  const program = `/cortex/${PROGRAM_FILE[launch.interpreter]}`;
  const command = commandOf(launch, {
    program,
    harness: '',
    python: 'python3',
    shell: '/bin/sh',
    node: '/usr/bin/node',
  });
  return archive(
    {
      [PROGRAM_FILE[launch.interpreter]]: launch.source,
      'inputs.json': launch.inputsJson,
      stdin: launch.stdin,
    },
    ['/bin/busybox', 'env', '-i', ...assignments({ ...ENVIRONMENT, ...launch.env }), ...command],
    launch.timeoutMs,
  );
}

/**
 * A job for a program of an image. Its command is a shell's, so that `$name` is the input of that name,
 * and the arguments follow it as they are.
 *
 * @param own the image's entry point and command, run where the job has none
 */
export function imageJobBytes(launch: ImageLaunch, own: readonly string[]): Promise<Buffer> {
  const busybox = `${TOOLS}/busybox`;
  // the image's shell where it has one: its users know that one
  const shell = [busybox, 'sh', '-c', `[ -x /bin/sh ] && exec /bin/sh "$@"; exec ${busybox} sh "$@"`, 'sh'];
  const command =
    launch.command === null
      ? [...own, ...launch.args]
      : [...shell, '-c', launch.args.length === 0 ? launch.command : `${launch.command} "$@"`, 'sh', ...launch.args];
  const { PATH: _, ...environment } = ENVIRONMENT;
  return archive(
    { 'inputs.json': launch.inputsJson, stdin: launch.stdin },
    [busybox, 'env', ...assignments({ ...environment, ...launch.env }), ...command],
    launch.timeoutMs,
  );
}

/** Files in the order of their names, and `start`, which says what to run. */
async function archive(
  files: Readonly<Record<string, string>>,
  command: readonly string[],
  timeoutMs: number,
): Promise<Buffer> {
  const tar = pack();
  for (const [name, text] of Object.entries(files)) tar.entry({ name, mode: 0o444 }, text);
  tar.entry(
    { name: 'start', mode: 0o444 },
    `deadline=${deadlineOf(timeoutMs)}\nset -- ${command.map(quoted).join(' ')}\n`,
  );
  tar.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of tar) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function assignments(variables: Readonly<Record<string, string>>): string[] {
  return Object.entries(variables).map(([name, value]) => `${name}=${value}`);
}
