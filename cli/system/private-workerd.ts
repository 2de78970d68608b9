/**
 * Moves the listeners of workerd from ports of loopback, which each user and each web page of this machine can reach, to Unix
 * sockets in a folder of this user. Miniflare starts workerd, and knows only ports.
 *
 * Invariant: every listener that Miniflare asks for is moved; workerd does not start with one that is not known here.
 */
import childProcess from 'node:child_process';
import { randomInt } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Where workerd listens, as `http.request` and `net.connect` take it. */
export type Upstream = { readonly socketPath: string } | { readonly host: string; readonly port: number };

/** Longest path of a Unix socket on all systems, with its end. */
const MOST_PATH_BYTES = 103;

export interface WorkerdSockets {
  readonly entry: string;
  /**
   * A random address of 127.0.0.0/8: workerd freezes with its inspector at a Unix socket. A web page cannot find it and its port,
   * which are 2^39 possibilities. Users of this machine can.
   */
  readonly inspectorHost: string;
  /** Removes what a workerd has left. */
  remove(): void;
}

/** @param folder for them; if its path is too long, they are in the folder for temporary files */
export function workerdSockets(folder: string): WorkerdSockets {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const isShort = Buffer.byteLength(join(folder, 'entry')) <= MOST_PATH_BYTES;
  const entry = join(isShort ? folder : mkdtempSync(join(tmpdir(), 'cortex-')), 'entry');
  const [a, b, c] = [randomInt(1, 255), randomInt(1, 255), randomInt(1, 255)];
  return { entry, inspectorHost: `127.${a}.${b}.${c}`, remove: () => rmSync(entry, { force: true }) };
}

/** The arguments of workerd with its listeners moved. @throws Error for another listener */
export function privateArguments(
  args: readonly string[],
  { entry, inspectorHost }: Pick<WorkerdSockets, 'entry' | 'inspectorHost'>,
): string[] {
  return args.map((arg) => {
    if (/^--socket-addr=entry=127\.0\.0\.1:\d+$/.test(arg)) return `--socket-addr=entry=unix:${entry}`;
    if (/^--inspector-addr=127\.0\.0\.1:\d+$/.test(arg)) return `--inspector-addr=${inspectorHost}:0`;
    if (/^(-[siS]|--(socket|inspector|debug))/.test(arg)) {
      throw new Error(`This version of wrangler opens a listener of workerd that has no guard: ${arg}`);
    }
    return arg;
  });
}

/**
 * From now on, each workerd that this process starts listens there.
 *
 * @param sockets null on Windows, where workerd cannot listen on Unix sockets: the ports stay
 * @param died called when workerd ends and Miniflare did not end it. Miniflare would start it again, as the same life
 */
export function makeWorkerdPrivate(sockets: WorkerdSockets | null, died: () => void): void {
  const { spawn } = childProcess;
  const replaced = (command: string, args: readonly string[], options: childProcess.SpawnOptions): unknown => {
    if (args[0] !== 'serve') return spawn(command, args, options);
    // The sockets of a workerd that was killed are in the way of the next one.
    sockets?.remove();
    const workerd = spawn(command, sockets === null ? args : privateArguments(args, sockets), options);
    workerd.once('exit', () => {
      if (!workerd.killed) died();
    });
    return workerd;
  };
  Object.assign(childProcess, { spawn: replaced });
  syncBuiltinESMExports();
}
