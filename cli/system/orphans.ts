/**
 * Ends the processes that an earlier start left running. Each service is recorded with the pid, start time and command of
 * its processes, so that a later process with the same pid is not ended.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { replaceFile } from '../project/real-path.ts';
import { listProcesses } from './processes.ts';
import type { ProcessInfo } from './processes.ts';
import { startLimits } from './start-limits.ts';

/** A recorded service: the leader of its process group, and the members of the group. */
export interface RecordedService {
  readonly name: string;
  readonly group: number;
  readonly members: readonly ProcessInfo[];
}

const FILE = 'services.json';

/** Records the running services. Ignores write errors: the system can serve without the record. */
export function recordServices(
  folder: string,
  services: readonly { readonly name: string; readonly pid: number }[],
): void {
  const all = listProcesses();
  const recorded = services.map(({ name, pid }): RecordedService => {
    return { name, group: pid, members: all.filter(({ group }) => group === pid) };
  });
  try {
    replaceFile(join(folder, FILE), JSON.stringify(recorded), 0o600);
  } catch {
    // Then a later start cannot find them.
  }
}

/**
 * The recorded processes that still run, with their whole groups.
 *
 * If one recorded process is unchanged (pid, start time, command), its group is the recorded one: the system does not
 * reuse the id of a group that has members.
 */
export function findOrphans(
  recorded: readonly RecordedService[],
  all: readonly ProcessInfo[],
): { readonly name: string; readonly processes: readonly ProcessInfo[] }[] {
  const known = new Map(all.map((info) => [info.pid, info]));
  const isSame = ({ pid, startedAt, command }: ProcessInfo): boolean => {
    const now = known.get(pid);
    return now !== undefined && now.startedAt === startedAt && now.command === command;
  };
  return recorded.flatMap(({ name, group, members }) => {
    const alive = members.filter(isSame);
    const hasGroup = group > 1 && alive.some(({ pid }) => known.get(pid)?.group === group);
    const rest = hasGroup ? all.filter((info) => info.group === group) : [];
    const processes = [...new Map([...alive, ...rest].map((info) => [info.pid, info])).values()];
    return processes.length === 0 ? [] : [{ name, processes }];
  });
}

/** Ends the processes that an earlier start on this folder left running. @returns a description; null if there were none */
export async function endOrphans(folder: string): Promise<string | null> {
  const recorded = readRecord(folder);
  const orphans = findOrphans(recorded, listProcesses()).map((orphan) => ({
    ...orphan,
    processes: orphan.processes.filter(({ pid }) => pid !== process.pid && pid !== process.ppid),
  }));
  const found = orphans.flatMap(({ processes }) => processes);
  if (found.length === 0) return null;
  signal(found, 'SIGTERM');
  if (!(await gone(found, startLimits.orphanGraceMs))) {
    signal(stillThere(found), 'SIGKILL');
    await gone(found, startLimits.killedMs);
  }
  const names = orphans.filter(({ processes }) => processes.length > 0).map(({ name }) => name);
  return `an earlier start was killed and left ${found.length} processes running (${names.join(', ')})`;
}

function readRecord(folder: string): RecordedService[] {
  try {
    const read: unknown = JSON.parse(readFileSync(join(folder, FILE), 'utf8'));
    return Array.isArray(read) ? (read.filter(isRecord) as RecordedService[]) : [];
  } catch {
    return [];
  }
}

function isRecord(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const { name, group, members } = value as Partial<RecordedService>;
  return typeof name === 'string' && Number.isSafeInteger(group) && Array.isArray(members) && members.every(isProcess);
}

function isProcess(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const { pid, startedAt, command } = value as Partial<ProcessInfo>;
  return Number.isSafeInteger(pid) && typeof startedAt === 'string' && typeof command === 'string';
}

/** Signals each process separately, so that a missing one does not affect the others. */
function signal(processes: readonly ProcessInfo[], name: NodeJS.Signals): void {
  for (const { pid } of processes) {
    try {
      process.kill(pid, name);
    } catch {
      // the process has ended
    }
  }
}

function stillThere(processes: readonly ProcessInfo[]): ProcessInfo[] {
  const now = new Map(listProcesses().map(({ pid, startedAt }) => [pid, startedAt]));
  return processes.filter(({ pid, startedAt }) => now.get(pid) === startedAt);
}

async function gone(processes: readonly ProcessInfo[], withinMs: number): Promise<boolean> {
  for (const until = Date.now() + withinMs; Date.now() < until; await delay(100)) {
    if (stillThere(processes).length === 0) return true;
  }
  return false;
}
