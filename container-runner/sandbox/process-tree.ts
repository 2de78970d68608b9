/** Finds and signals all processes of a tree through /proc. Finds nothing on systems other than Linux. */
import fs from 'node:fs';

/** All descendants of `pid`, without `pid`. */
export function descendantsOf(pid: number): number[] {
  const found: number[] = [];
  const open = [pid];
  for (let parent = open.pop(); parent !== undefined; parent = open.pop()) {
    for (const child of childrenOf(parent)) {
      found.push(child);
      open.push(child);
    }
  }
  return found;
}

/** Processes with `NAME=value` in their environment, even if they left the process group. */
export function marked(variable: string): number[] {
  return environments()
    .filter(({ variables }) => variables.includes(variable))
    .map(({ pid }) => pid);
}

/** The environments (`NAME=value`) with which processes started their programs, as far as they can be read. */
export function environments(): { readonly pid: number; readonly variables: readonly string[] }[] {
  return pids().flatMap((pid) => {
    try {
      return [{ pid, variables: fs.readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0') }];
    } catch {
      return [];
    }
  });
}

/** When a process started, in clock ticks since the start of the system: with the pid, it identifies the process. */
export function startOf(pid: number): string | null {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'latin1');
    // Field 22. The second field, the program's name in parentheses, may contain any character.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null;
  } catch {
    return null;
  }
}

/** Ignores processes that have ended. */
export function signalAll(targets: readonly number[], signal: 'SIGTERM' | 'SIGKILL'): void {
  for (const pid of targets) {
    try {
      process.kill(pid, signal);
    } catch {
      continue;
    }
  }
}

function childrenOf(pid: number): number[] {
  try {
    return fs
      .readdirSync(`/proc/${pid}/task`)
      .flatMap((thread) => fs.readFileSync(`/proc/${pid}/task/${thread}/children`, 'latin1').trim().split(' '))
      .filter((text) => text !== '')
      .map(Number);
  } catch {
    return [];
  }
}

function pids(): number[] {
  try {
    return fs
      .readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number);
  } catch {
    return [];
  }
}
