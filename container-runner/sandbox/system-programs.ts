/** How a program is run by the interpreters of the operating system: the words after the sandbox's own. */
import { fileURLToPath } from 'node:url';

import type { Interpreter, Launch } from './sandbox.ts';

export const HARNESS = fileURLToPath(new URL('../guest/harness.py', import.meta.url));

/** Where the parts of one job stand, as its program sees them. */
export interface Places {
  readonly program: string;
  readonly harness: string;
  readonly python: string;
  readonly shell: string;
  readonly node: string;
}

/** Names of the program's file: interpreters judge by the ending. */
export const PROGRAM_FILE = { python3: 'program.py', shell: 'program.sh', node: 'program.js' } as const;

export function commandOf(launch: Launch, places: Places): string[] {
  switch (launch.interpreter) {
    case 'python3':
      // isolated: no variables, no user's packages, no current directory on the module path
      return [places.python, '-I', '-X', 'utf8', places.harness, launch.entry, places.program, ...launch.args];
    case 'shell':
      return [places.shell, places.program, ...launch.args];
    case 'node':
      return [places.node, `--max-old-space-size=${launch.memoryMb}`, places.program, ...launch.args];
  }
}

/** What every program finds in its environment, besides its own variables. */
export function baseEnvironment(home: string, temporary: string, inputs: string): Record<string, string> {
  return {
    PATH: '/usr/local/bin:/usr/bin:/bin',
    HOME: home,
    TMPDIR: temporary,
    LANG: 'C.UTF-8',
    CORTEX_INPUTS: inputs,
  };
}

/** Node ends by SIGABRT when its heap is full; its parent sees 134. */
export function isHeapExhausted(interpreter: Interpreter, exitCode: number | null): boolean {
  return interpreter === 'node' && exitCode === 134;
}

/** A word that every shell reads to the letter. */
export function quoted(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
