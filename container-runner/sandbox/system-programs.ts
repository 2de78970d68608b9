/** Command lines for the interpreters of the operating system. */
import { fileURLToPath } from 'node:url';

import { WORKSPACE } from './given-files.ts';
import type { ImageLaunch, Interpreter, Launch } from './sandbox.ts';

export const HARNESS = fileURLToPath(new URL('../guest/harness.py', import.meta.url));

/** Paths of a job's files, as its program sees them. */
export interface Places {
  readonly program: string;
  readonly harness: string;
  readonly python: string;
  readonly shell: string;
  readonly node: string;
}

/** File names of programs; interpreters depend on the extension. */
export const PROGRAM_FILE = { python3: 'program.py', shell: 'program.sh', node: 'program.js' } as const;

export function commandOf(launch: Launch, places: Places): string[] {
  switch (launch.interpreter) {
    case 'python3':
      // isolated: no variables, no user packages, no current directory in the module path
      return [places.python, '-I', '-B', '-X', 'utf8', places.harness, launch.entry, places.program, ...launch.args];
    case 'shell':
      return [places.shell, places.program, ...launch.args];
    case 'node':
      return [places.node, `--max-old-space-size=${launch.memoryMb}`, places.program, ...launch.args];
  }
}

/** Environment of every program, in addition to its own variables. */
export function baseEnvironment(home: string, temporary: string, inputs: string): Record<string, string> {
  return {
    PATH: '/usr/local/bin:/usr/bin:/bin',
    HOME: home,
    TMPDIR: temporary,
    LANG: 'C.UTF-8',
    CORTEX_INPUTS: inputs,
  };
}

/** The variables of a workspace; none without one. The bytecode of imported modules would be kept as files. */
export function workspaceVariables({ workspace }: Pick<Launch | ImageLaunch, 'workspace'>): Record<string, string> {
  return workspace === undefined ? {} : { CORTEX_WORKSPACE: WORKSPACE, PYTHONDONTWRITEBYTECODE: '1' };
}

/** Where a program starts: code in the workspace, if it has one; a tool in its work directory. */
export function directoryOf({ entry, workspace }: Pick<Launch, 'entry' | 'workspace'>): '/work' | '/workspace' {
  return entry === 'code' && workspace !== undefined ? WORKSPACE : '/work';
}

/** Node aborts with SIGABRT when its heap is full; the parent sees exit code 134. */
export function isHeapExhausted(interpreter: Interpreter, exitCode: number | null): boolean {
  return interpreter === 'node' && exitCode === 134;
}

/** Quotes a word for any shell. */
export function quoted(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
