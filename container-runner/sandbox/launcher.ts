/**
 * Additional protection of the embedded sandbox by the operating system, if available: an empty network namespace, an
 * unprivileged user, termination with the runner, and a limit on data memory. Each part is tested at startup; `/health`
 * shows what is used.
 */
import { spawn } from 'node:child_process';

import { limits } from '../limits.ts';

export interface Launcher {
  /** Names of the parts in use, for people. */
  readonly uses: readonly string[];
  /** The command prefix. */
  prefix(memoryMb: number): readonly string[];
}

export const NO_LAUNCHER: Launcher = { uses: [], prefix: () => [] };

/** Memory of the interpreter itself: code, snapshot, and Node's heap. */
const BASE_MEMORY_MB = 1_024;
const MEBIBYTE = 1_048_576;

/** A dedicated user id, so that an escaped interpreter cannot signal the runner. */
const UID = 61_999;
const SETPRIV = 'setpriv --no-new-privs --pdeathsig KILL';
const DROP = `--reuid=${UID} --regid=${UID} --clear-groups --bounding-set=-all --inh-caps=-all`;

/** Strongest first. */
const COMBINATIONS: readonly { readonly uses: readonly string[]; readonly words: string }[] = [
  {
    uses: ['network namespace', 'own user', 'death with the runner'],
    words: `unshare --net ${SETPRIV} ${DROP}`,
  },
  {
    uses: ['network namespace', 'no capabilities', 'death with the runner'],
    words: `unshare --net ${SETPRIV} --bounding-set=-all --inh-caps=-all`,
  },
  { uses: ['network namespace', 'death with the runner'], words: `unshare --user --net ${SETPRIV}` },
  { uses: ['death with the runner'], words: SETPRIV },
];

/**
 * Tests the combinations by running Node with them, strongest first.
 *
 * @param needed files that the interpreters read; another user may lack the permission
 */
export async function findLauncher(needed: readonly string[]): Promise<Launcher> {
  if (process.platform !== 'linux') return NO_LAUNCHER;
  const withMemory = await works(['prlimit', `--data=${BASE_MEMORY_MB * MEBIBYTE}`, '--core=0'], needed);
  function memory(memoryMb: number): string[] {
    return withMemory ? ['prlimit', `--data=${(BASE_MEMORY_MB + memoryMb) * MEBIBYTE}`, '--core=0'] : [];
  }
  const also = withMemory ? ['memory limit'] : [];
  for (const { uses, words } of COMBINATIONS) {
    const prefix = words.split(' ');
    if (await works([...prefix, ...memory(limits.memoryMb)], needed)) {
      return { uses: [...uses, ...also], prefix: (memoryMb) => [...prefix, ...memory(memoryMb)] };
    }
  }
  return { uses: also, prefix: memory };
}

function works(prefix: readonly string[], needed: readonly string[]): Promise<boolean> {
  const [command = '', ...args] = prefix;
  const readable = needed.map((file) => `--allow-fs-read=${file}`);
  const look = `for (const file of ${JSON.stringify(needed)}) require('node:fs').closeSync(require('node:fs').openSync(file))`;
  return new Promise((resolve) => {
    const child = spawn(command, [...args, process.execPath, '--permission', ...readable, '--eval', look], {
      cwd: '/',
      env: {},
      stdio: 'ignore',
      timeout: limits.probeMs,
    });
    child.once('error', () => resolve(false));
    child.once('exit', (code) => resolve(code === 0));
  });
}
