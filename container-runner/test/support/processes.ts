/** Identifies processes by number and start time, because numbers are reused. */
import { readFileSync } from 'node:fs';

import { descendantsOf } from '../../sandbox/process-tree.ts';

export interface ProcessRef {
  readonly pid: number;
  /** Clock ticks since the start of the system. */
  readonly startedAt: string;
  readonly command: string;
}

/** All descendants of a process. */
export function treeOf(pid: number): ProcessRef[] {
  return descendantsOf(pid).flatMap((child) => {
    const stat = statOf(child);
    return stat === null ? [] : [{ pid: child, startedAt: stat.startedAt, command: commandOf(child) }];
  });
}

/** A process that has ended and waits for its parent does not count. */
export function isAlive({ pid, startedAt }: ProcessRef): boolean {
  const stat = statOf(pid);
  return stat !== null && stat.startedAt === startedAt && !'ZX'.includes(stat.state);
}

/** Sends a signal to each process that has not ended meanwhile. */
export function signalAll(processes: readonly ProcessRef[], signal: NodeJS.Signals): void {
  for (const one of processes) {
    try {
      if (isAlive(one)) process.kill(one.pid, signal);
    } catch (fault) {
      // It ended after the look.
      if ((fault as NodeJS.ErrnoException).code !== 'ESRCH') throw fault;
    }
  }
}

/** The fields 3 and 22 of /proc/<pid>/stat; the second field is the program's name and can contain any character. */
function statOf(pid: number): { readonly state: string; readonly startedAt: string } | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const [state = '', ...more] = text.slice(text.lastIndexOf(') ') + 2).split(' ');
    return { state, startedAt: more[18] ?? '' };
  } catch {
    return null;
  }
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
  } catch {
    return '';
  }
}
