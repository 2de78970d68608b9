/** Lists the processes of this machine with their groups and start times. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

export interface ProcessInfo {
  readonly pid: number;
  readonly group: number;
  /** Together with `pid`, unique on this machine: pids are reused. */
  readonly startedAt: string;
  readonly command: string;
}

/** All visible processes, or those that `isWanted` selects; skips processes that end meanwhile. */
export function listProcesses(
  isWanted: (process: Pick<ProcessInfo, 'pid' | 'group'>) => boolean = () => true,
): ProcessInfo[] {
  if (process.platform === 'linux') return fromProc(isWanted);
  return process.platform === 'win32' ? [] : fromPs().filter(isWanted);
}

function fromProc(isWanted: (process: Pick<ProcessInfo, 'pid' | 'group'>) => boolean): ProcessInfo[] {
  const boot = textOf('/proc/sys/kernel/random/boot_id')?.trim() ?? '';
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    const stat = textOf(`/proc/${name}/stat`);
    if (stat === null) return [];
    // the program's name, in parentheses, may contain any character
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [state = '', , group = ''] = fields;
    // skip zombies: only their pid remains
    if (state === 'Z' || state === 'X') return [];
    const numbers = { pid: Number(name), group: Number(group) };
    const command = isWanted(numbers) ? textOf(`/proc/${name}/cmdline`) : null;
    if (command === null) return [];
    return [{ ...numbers, startedAt: `${boot} ${fields[19] ?? ''}`, command: command.replaceAll('\0', ' ').trim() }];
  });
}

function fromPs(): ProcessInfo[] {
  const listed = spawnSync('ps', ['-A', '-ww', '-o', 'pid=,pgid=,lstart=,command='], {
    encoding: 'utf8',
    env: { ...process.env, LC_ALL: 'C' },
  });
  return (listed.stdout ?? '').split('\n').flatMap((line) => {
    const [, pid, group, startedAt = '', command = ''] =
      /^\s*(\d+)\s+(\d+)\s+(\w+\s+\w+\s+\d+\s+[\d:]+\s+\d+)\s+(.*)$/.exec(line) ?? [];
    return pid === undefined ? [] : [{ pid: Number(pid), group: Number(group), startedAt, command }];
  });
}

function textOf(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
