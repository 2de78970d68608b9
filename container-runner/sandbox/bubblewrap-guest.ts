/** What runs inside of bubblewrap's namespaces: the start script of a program, its limits, and the way of its files. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';

import { limits } from '../limits.ts';
import { WORKSPACE } from './given-files.ts';
import type { Interpreter, Launch, ResourceLimits } from './sandbox.ts';
import {
  baseEnvironment,
  commandOf,
  directoryOf,
  PROGRAM_FILE,
  quoted,
  workspaceVariables,
} from './system-programs.ts';

/** The guest's own descriptor: files of the workspace in and out. It closes it for the program. */
export const CHANNEL = 3;
export const NODE = '/cortex-node';
export const PYTHON = '/usr/bin/python3';
export const INPUTS = '/cortex/inputs.json';
const ENVIRONMENT = baseEnvironment('/work', '/tmp', INPUTS);
const SHELL = fs.existsSync('/usr/bin/bash') || fs.existsSync('/bin/bash') ? '/bin/bash' : '/bin/sh';

/** The command that writes an archive to standard output; each hard link becomes a file. Null if tar is missing. */
export const TAR = ((): string | null => {
  const { error, stdout } = spawnSync('tar', ['--help'], { env: { PATH: '/usr/bin:/bin' }, encoding: 'utf8' });
  if (error !== undefined) return null;
  return stdout.includes('--hard-dereference') ? 'tar --hard-dereference --format=gnu -cf' : 'tar cf';
})();

/** The start script: runs the program with its own variables only. */
export function startOf(launch: Launch): string {
  const command = commandOf(launch, {
    program: `/cortex/${PROGRAM_FILE[launch.interpreter]}`,
    harness: '/cortex/harness.py',
    python: PYTHON,
    shell: SHELL,
    node: NODE,
  });
  const variables = Object.entries({ ...ENVIRONMENT, ...launch.env, ...workspaceVariables(launch) });
  const words = [...variables.map(([name, value]) => `${name}=${value}`), ...command].map(quoted).join(' ');
  if (launch.workspace === undefined) return `exec ${CHANNEL}<&-\nexec /usr/bin/env -i ${words}\n`;
  return `exec 9>&2 2>/dev/null
trap : TERM
chmod 0755 ${WORKSPACE} && cd / && tar xf - <&${CHANNEL} && cd ${directoryOf(launch)} || exit 126
/usr/bin/env -i ${words} 2>&9 9>&- ${CHANNEL}<&-
code=$?
while kill -KILL -1; do :; done
chmod -R u+rwX ${WORKSPACE} && cd ${WORKSPACE} && ${TAR ?? 'tar cf'} - . >&${CHANNEL} && printf complete >&${CHANNEL}
exit "$code"
`;
}

/** Limits per process, set inside the namespace, so that only its processes count. */
export function limiter(
  interpreter: Interpreter,
  { memoryMb, processes, diskMb, timeoutMs }: ResourceLimits,
): string[] {
  // node maps much memory that it never touches
  const dataMb = interpreter === 'node' ? memoryMb + 512 : memoryMb;
  return [
    'prlimit',
    `--data=${dataMb * 1_048_576}`,
    `--nproc=${processes}`,
    // each place in memory has its own limit, too
    `--fsize=${Math.max(diskMb * 1_048_576, limits.workspaceFileBytes)}`,
    `--nofile=${limits.openFiles}`,
    `--cpu=${Math.ceil(timeoutMs / 1_000) + 5}`,
    '--core=0',
    '--',
  ];
}
