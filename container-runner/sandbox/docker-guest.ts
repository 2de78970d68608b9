/**
 * Passes a job to a waiting container through standard input. A preloaded Python gets JSON; otherwise busybox unpacks an
 * archive and runs the program.
 */
import fs from 'node:fs';

import { pack } from 'tar-stream';

import type { ImageLaunch, Interpreter, Launch } from './sandbox.ts';
import { deadlineOf, LOADED_PYTHON, loadedJob } from './loaded-python.ts';
import { baseEnvironment, commandOf, PROGRAM_FILE, quoted } from './system-programs.ts';

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

/** Encodes a job for the waiting container. */
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
 * Encodes a job for a program of an image. Its command is a shell command, so `$name` is the input of that name, and the
 * arguments are appended verbatim.
 *
 * @param own the image's entry point and command, for a job without a command
 */
export function imageJobBytes(launch: ImageLaunch, own: readonly string[]): Promise<Buffer> {
  const busybox = `${TOOLS}/busybox`;
  // prefer the image's own shell, which its users expect
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

/** An archive of the files, sorted by name, with `start`, which holds the command. */
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
