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
  return pids().filter((pid) => {
    try {
      return fs.readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(variable);
    } catch {
      return false;
    }
  });
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
