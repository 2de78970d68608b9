/**
 * What the operating system offers on top of the embedded sandbox, where it does: a network namespace
 * with nothing in it, an unprivileged user, death with the runner, a limit on data memory. Each part is
 * tried once at start; what does not work is left out, and `/health` says what is used.
 */
import { spawn } from 'node:child_process';

import { limits } from '../limits.ts';

export interface Launcher {
  /** Names of what is used, for people. */
  readonly uses: readonly string[];
  /** The words to put before the command. */
  prefix(memoryMb: number): readonly string[];
}

export const NO_LAUNCHER: Launcher = { uses: [], prefix: () => [] };

/** What an interpreter needs besides the memory of its job: its own code, the snapshot, the heap of Node. */
const BASE_MEMORY_MB = 1_024;
const MEBIBYTE = 1_048_576;

const PREFIXES: readonly { readonly uses: readonly string[]; readonly words: readonly string[] }[] = [
  {
    uses: ['network namespace', 'death with the runner'],
    words: [
      'unshare',
      '--net',
      'setpriv',
      '--no-new-privs',
      '--bounding-set=-all',
      '--inh-caps=-all',
      '--pdeathsig',
      'KILL',
    ],
  },
  {
    uses: ['network namespace', 'death with the runner'],
    words: ['unshare', '--user', '--net', 'setpriv', '--no-new-privs', '--pdeathsig', 'KILL'],
  },
  { uses: ['death with the runner'], words: ['setpriv', '--no-new-privs', '--pdeathsig', 'KILL'] },
];

/** Tries the strongest combination first, by running Node with it. */
export async function findLauncher(): Promise<Launcher> {
  if (process.platform !== 'linux') return NO_LAUNCHER;
  const withMemory = await works(['prlimit', `--data=${BASE_MEMORY_MB * MEBIBYTE}`, '--core=0']);
  function memory(memoryMb: number): string[] {
    return withMemory ? ['prlimit', `--data=${(BASE_MEMORY_MB + memoryMb) * MEBIBYTE}`, '--core=0'] : [];
  }
  for (const { uses, words } of PREFIXES) {
    if (await works([...words, ...memory(limits.memoryMb)])) {
      return {
        uses: [...uses, ...(withMemory ? ['memory limit'] : [])],
        prefix: (memoryMb) => [...words, ...memory(memoryMb)],
      };
    }
  }
  return { uses: withMemory ? ['memory limit'] : [], prefix: memory };
}

function works(prefix: readonly string[]): Promise<boolean> {
  const [command = '', ...args] = prefix;
  return new Promise((resolve) => {
    const child = spawn(command, [...args, process.execPath, '--permission', '--version'], {
      env: {},
      stdio: 'ignore',
      timeout: limits.probeMs,
    });
    child.once('error', () => resolve(false));
    child.once('exit', (code) => resolve(code === 0));
  });
}
