/**
 * What an earlier start has left running: its services are written down with what tells each process from a later one
 * with its number, and only those that are still the same are ended.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { listProcesses } from './processes.ts';
import type { ProcessInfo } from './processes.ts';
import { startLimits } from './start-limits.ts';

/** A service as it is written down: the leader of its group, and who belongs to it. */
export interface RecordedService {
  readonly name: string;
  readonly group: number;
  readonly members: readonly ProcessInfo[];
}

const FILE = 'services.json';

/** Writes down what runs now; what cannot be written is no reason not to serve. */
export function recordServices(
  folder: string,
  services: readonly { readonly name: string; readonly pid: number }[],
): void {
  const all = listProcesses();
  const recorded = services.map(({ name, pid }): RecordedService => {
    return { name, group: pid, members: all.filter(({ group }) => group === pid) };
  });
  try {
    const file = join(folder, FILE);
    writeFileSync(`${file}.new`, JSON.stringify(recorded), { mode: 0o600 });
    renameSync(`${file}.new`, file);
  } catch {
    // Then a later start has to be told by its user.
  }
}

/**
 * The processes of the record that still run, with everything in their groups.
 *
 * A recorded process that is the same still (number, start time, command) proves that its group is the recorded one:
 * the number of a group is not given away while the group has members.
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

/** Ends what an earlier start of this folder has left running. @returns what that was, in words; null = nothing */
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

/** Each by itself: one that is gone takes no other with it. */
function signal(processes: readonly ProcessInfo[], name: NodeJS.Signals): void {
  for (const { pid } of processes) {
    try {
      process.kill(pid, name);
    } catch {
      // It is gone already.
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
