/** Lists what the processes of a system listen on (Linux). */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import type { ProcessRef } from '../../container-runner/test/support/processes.ts';

export interface Listener {
  /** The command of the process that has it. */
  readonly command: string;
  readonly type: 'tcp' | 'tcp6' | 'udp' | 'udp6' | 'unix';
  /** Dotted address and port, the hexadecimal address of IPv6, or the path. */
  readonly address: string;
}

const LISTENING = { tcp: '0A', tcp6: '0A', udp: '07', udp6: '07' } as const;
/** The flag `__SO_ACCEPTCON`. */
const ACCEPTS = 0x1_00_00;

export function listenersOf(processes: readonly Pick<ProcessRef, 'pid' | 'command'>[]): Listener[] {
  return processes.flatMap(({ pid, command }) => {
    const open = socketsOf(pid);
    const internet = (Object.keys(LISTENING) as (keyof typeof LISTENING)[]).flatMap((type) =>
      rowsOf(pid, type).flatMap(([, local = '', , state = '', , , , , , inode = '']) =>
        state === LISTENING[type] && open.has(inode) ? [{ command, type, address: addressOf(local) }] : [],
      ),
    );
    const local = rowsOf(pid, 'unix').flatMap(([, , , flags = '', , , inode = '', path = '']) =>
      (Number.parseInt(flags, 16) & ACCEPTS) !== 0 && open.has(inode)
        ? [{ command, type: 'unix' as const, address: path }]
        : [],
    );
    return [...internet, ...local];
  });
}

/** Inodes of the sockets that a process has open. */
function socketsOf(pid: number): Set<string> {
  const links = namesIn(`/proc/${pid}/fd`).map((name) => linkOf(`/proc/${pid}/fd/${name}`));
  return new Set(links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []));
}

/** The rows of a table, in the process's own network. */
function rowsOf(pid: number, table: string): string[][] {
  try {
    const lines = readFileSync(`/proc/${pid}/net/${table}`, 'utf8').trim().split('\n');
    return lines.slice(1).map((line) => line.trim().split(/\s+/));
  } catch {
    return [];
  }
}

/** @param text such as 0100007F:2253 */
function addressOf(text: string): string {
  const [host = '', port = ''] = text.split(':');
  const shown =
    host.length === 8
      ? (host.match(/../g) ?? [])
          .map((byte) => Number.parseInt(byte, 16))
          .toReversed()
          .join('.')
      : host;
  return `${shown}:${Number.parseInt(port, 16)}`;
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    // The process has ended.
    return [];
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}
