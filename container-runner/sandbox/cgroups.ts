/**
 * Limits for a whole process tree, if cgroups are writable: memory, number of processes, and whether the memory limit
 * killed a process (R4).
 */
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { limits } from '../limits.ts';
import type { ResourceLimits } from './sandbox.ts';

const MEBIBYTE = 1_048_576;
const CPU_PERIOD_US = 100_000;
const REMOVE_ATTEMPTS = 50;
const REMOVE_EVERY_MS = 20;
const FAMILY = 'cortex-runner-';
/** Each call of `openCgroups` uses separate groups. */
let opened = 0;

/** Limits of a process tree. */
type TreeLimits = Pick<ResourceLimits, 'memoryMb' | 'processes' | 'cpus'>;

/** The cgroup of one job. */
export interface JobCgroup {
  /** Command prefix that moves the process into the group. */
  readonly prefix: readonly string[];
  /** Whether the memory limit killed a process of the job. */
  ranOut(): boolean;
}

export interface Cgroups {
  create(slot: number, resources: TreeLimits): JobCgroup;
  /** Removes the groups; waits for dying processes. */
  close(): Promise<void>;
}

/** One hierarchy: all controllers in version 2, one controller in version 1. */
interface Hierarchy {
  readonly root: string;
  limit(directory: string, resources: TreeLimits): void;
}

/** Null if cgroups are not writable, which is tested by setting limits. */
export function openCgroups(): Cgroups | null {
  // the CPU controller is optional, the others are required
  for (const hierarchies of [VERSION_2, VERSION_1, VERSION_1.filter(({ root }) => !root.endsWith('cpu'))]) {
    const cgroups = tryOpen(hierarchies);
    if (cgroups !== null) return cgroups;
  }
  return null;
}

const VERSION_2: readonly Hierarchy[] = [
  {
    root: '/sys/fs/cgroup',
    limit: (directory, { memoryMb, processes, cpus }) => {
      write(directory, 'memory.max', memoryMb * MEBIBYTE);
      writeIfThere(directory, 'memory.swap.max', 0);
      write(directory, 'pids.max', processes);
      writeIfThere(directory, 'cpu.max', `${Math.round(cpus * CPU_PERIOD_US)} ${CPU_PERIOD_US}`);
    },
  },
];
const VERSION_1: readonly Hierarchy[] = [
  {
    root: '/sys/fs/cgroup/memory',
    limit: (directory, { memoryMb }) => {
      // the limit with swap must not be lower than the limit without
      writeIfThere(directory, 'memory.memsw.limit_in_bytes', -1);
      write(directory, 'memory.limit_in_bytes', memoryMb * MEBIBYTE);
      writeIfThere(directory, 'memory.memsw.limit_in_bytes', memoryMb * MEBIBYTE);
    },
  },
  { root: '/sys/fs/cgroup/pids', limit: (directory, { processes }) => write(directory, 'pids.max', processes) },
  {
    root: '/sys/fs/cgroup/cpu',
    limit: (directory, { cpus }) => {
      write(directory, 'cpu.cfs_period_us', CPU_PERIOD_US);
      write(directory, 'cpu.cfs_quota_us', Math.round(cpus * CPU_PERIOD_US));
    },
  },
];

function tryOpen(hierarchies: readonly Hierarchy[]): Cgroups | null {
  opened += 1;
  const name = `${FAMILY}${process.pid}-${opened}`;
  const parents = hierarchies.map(({ root }) => path.join(root, name));
  const cgroups: Cgroups = {
    create(slot, resources) {
      // leave room for the interpreter itself
      const directories = parents.map((parent) => path.join(parent, String(slot)));
      hierarchies.forEach(({ limit }, at) => {
        const directory = directories[at] ?? '';
        fs.mkdirSync(directory, { recursive: true });
        limit(directory, resources);
      });
      const before = kills(directories);
      const enter = directories.map((directory) => `echo $$ > '${directory}/cgroup.procs'`).join(' && ');
      return {
        prefix: ['/bin/sh', '-c', `${enter} && exec "$@"`, 'sh'],
        ranOut: () => kills(directories) > before,
      };
    },
    async close() {
      for (let attempt = 1; attempt <= REMOVE_ATTEMPTS; attempt += 1) {
        if (parents.map(removeGroup).every(Boolean)) return;
        await sleep(REMOVE_EVERY_MS);
      }
    },
  };
  try {
    for (const [at, { root }] of hierarchies.entries()) {
      const parent = parents[at] ?? '';
      if (!fs.existsSync(path.join(root, 'cgroup.procs'))) return null;
      fs.mkdirSync(parent, { recursive: true });
      if (root === '/sys/fs/cgroup') enable(parent);
    }
    cgroups.create(0, limits);
    for (const { root } of hierarchies) removeAbandoned(root);
    return cgroups;
  } catch {
    parents.forEach(removeGroup);
    return null;
  }
}

/** How often the memory limit killed a process. */
function kills(directories: readonly string[]): number {
  for (const directory of directories) {
    for (const file of ['memory.events', 'memory.oom_control']) {
      try {
        const count = /^oom_kill (\d+)$/m.exec(fs.readFileSync(path.join(directory, file), 'utf8'))?.[1];
        if (count !== undefined) return Number(count);
      } catch {
        continue;
      }
    }
  }
  return 0;
}

function write(directory: string, file: string, value: number | string): void {
  // never create the file: the path may be an ordinary directory
  fs.writeFileSync(path.join(directory, file), String(value), { flag: 'r+' });
}

/** Enables the controllers for child groups. */
function enable(parent: string): void {
  write(parent, 'cgroup.subtree_control', '+memory +pids');
  try {
    write(parent, 'cgroup.subtree_control', '+cpu');
  } catch {
    // not delegated to this process
  }
}

function writeIfThere(directory: string, file: string, value: number | string): void {
  if (fs.existsSync(path.join(directory, file))) write(directory, file, value);
}

/** Removes groups of runners that were killed. */
function removeAbandoned(root: string): void {
  for (const name of namesIn(root)) {
    if (!name.startsWith(FAMILY)) continue;
    const [pid = ''] = name.slice(FAMILY.length).split('-');
    if (!fs.existsSync(`/proc/${pid}`)) removeGroup(path.join(root, name));
  }
}

/** False if it still contains processes. */
function removeGroup(group: string): boolean {
  for (const slot of namesIn(group)) if (/^\d+$/.test(slot)) removeDirectory(path.join(group, slot));
  removeDirectory(group);
  return !fs.existsSync(group);
}

function namesIn(directory: string): string[] {
  try {
    return fs.readdirSync(directory);
  } catch {
    return [];
  }
}

function removeDirectory(directory: string): void {
  try {
    fs.rmdirSync(directory);
  } catch {
    // missing, or not empty
  }
}
