/** What the processes of a group use, from /proc (Linux). */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

export interface Usage {
  readonly processes: number;
  readonly threads: number;
  /** Proportional set size in bytes: shared pages count once for all processes. */
  readonly pssBytes: number;
  /** Open file descriptors, and those of them that are sockets. */
  readonly descriptors: number;
  readonly sockets: number;
  /** Processor time of the processes that are alive, in milliseconds. */
  readonly cpuMs: number;
}

interface Stat {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly threads: number;
  readonly cpuTicks: number;
}

/** `sysconf(_SC_CLK_TCK)`, the same on every Linux that Node supports. */
const TICK_MS = 10;

/**
 * Processes of the group that `leader` leads, and their descendants in other groups.
 *
 * @param program only processes whose program has this name
 */
export function processesOf(leader: number, program?: string): number[] {
  const stats = readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? (statOf(Number(name)) ?? []) : []));
  const found = new Set(stats.flatMap(({ pid, group }) => (group === leader ? [pid] : [])));
  for (let before = -1; before !== found.size;) {
    before = found.size;
    for (const { pid, parent } of stats) if (found.has(parent)) found.add(pid);
  }
  return [...found].filter((pid) => program === undefined || programOf(pid) === program);
}

/** Processes that have ended meanwhile count nothing. */
export function usageOf(pids: readonly number[]): Usage {
  const parts = pids.map((pid) => {
    const links = linksOf(pid);
    const stat = statOf(pid);
    return {
      processes: stat === null ? 0 : 1,
      threads: stat?.threads ?? 0,
      pssBytes: pssOf(pid),
      descriptors: links.length,
      sockets: links.filter((link) => link.startsWith('socket:')).length,
      cpuMs: (stat?.cpuTicks ?? 0) * TICK_MS,
    };
  });
  const sum = (of: (usage: Usage) => number): number => parts.reduce((all, part) => all + of(part), 0);
  return {
    processes: sum(({ processes }) => processes),
    threads: sum(({ threads }) => threads),
    pssBytes: sum(({ pssBytes }) => pssBytes),
    descriptors: sum(({ descriptors }) => descriptors),
    sockets: sum(({ sockets }) => sockets),
    cpuMs: sum(({ cpuMs }) => cpuMs),
  };
}

/** Those of the processes that have a file in this folder open. */
export function holdersOf(folder: string, pids: readonly number[]): number[] {
  return pids.filter((pid) => linksOf(pid).some((link) => link.startsWith(folder)));
}

/** Ports of loopback on which these processes listen. */
export function portsOf(pids: readonly number[]): number[] {
  const sockets = new Set(pids.flatMap(linksOf));
  const lines = (readFile('/proc/net/tcp') ?? '').split('\n').slice(1);
  return lines.flatMap((line) => {
    const [, local = '', , state, , , , , , inode] = line.trim().split(/\s+/);
    const isListening = state === '0A' && sockets.has(`socket:[${inode}]`);
    return isListening ? [Number.parseInt(local.split(':')[1] ?? '', 16)] : [];
  });
}

/** Processes, of any parent, with `text` in their command line. */
export function processesWith(text: string): number[] {
  return readdirSync('/proc').flatMap((name) => {
    const isFound = /^\d+$/.test(name) && readFile(`/proc/${name}/cmdline`)?.includes(text) === true;
    return isFound && Number(name) !== process.pid ? [Number(name)] : [];
  });
}

function statOf(pid: number): Stat | null {
  const text = readFile(`/proc/${pid}/stat`);
  if (text === null) return null;
  // The name may contain spaces and parentheses.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const at = (index: number): number => Number(fields[index]);
  return { pid, parent: at(1), group: at(2), cpuTicks: at(11) + at(12), threads: at(17) };
}

const programOf = (pid: number): string => (readFile(`/proc/${pid}/comm`) ?? '').trim();

function pssOf(pid: number): number {
  return Number(/^Pss:\s+(\d+) kB/m.exec(readFile(`/proc/${pid}/smaps_rollup`) ?? '')?.[1] ?? 0) * 1_024;
}

function linksOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).map((name) => {
      try {
        return readlinkSync(`/proc/${pid}/fd/${name}`);
      } catch {
        return '';
      }
    });
  } catch {
    return [];
  }
}

function readFile(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
