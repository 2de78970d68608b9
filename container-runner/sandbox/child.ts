/** A child process as a `SandboxProcess`: common code of the sandboxes. */
import type { ChildProcess } from 'node:child_process';
import type { Readable } from 'node:stream';

import { limits } from '../limits.ts';
import type { ProcessEnd, SandboxProcess } from './sandbox.ts';

export interface ChildWithPipes {
  readonly child: ChildProcess;
  readonly stdout: Readable;
  readonly stderr: Readable;
}

/** @throws Error if the child has no pipes or could not be started */
export function withPipes(child: ChildProcess): ChildWithPipes {
  const { stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new Error('The child was started without pipes for its output');
  return { child, stdout, stderr };
}

/** Resolves when the program is running. @throws Error if it could not be started, for example if it is not installed */
export function spawned(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', (fault) =>
      reject('code' in fault && fault.code === 'ENOENT' ? new Error(`${child.spawnfile} is not installed`) : fault),
    );
  });
}

/** The sandbox failed, not its program. */
export const LOST: ProcessEnd = { exitCode: null, signal: null, oom: false, lost: true };

/** Writes `text` to a pipe and closes it. Ignores errors of a closed pipe. */
export function feed(pipe: unknown, text: string | Uint8Array): void {
  const writable = pipe as NodeJS.WritableStream | null | undefined;
  if (writable === null || writable === undefined) return;
  writable.on('error', () => undefined);
  writable.end(text);
}

/**
 * Resolves when the child has exited and its pipes are closed, or when they bring nothing for `limits.drainMs` after the
 * exit. `close` alone is not sufficient: a grandchild can keep a pipe open indefinitely. What the child had written is read
 * first, however busy this process is (R4); what a grandchild goes on writing is read for `limits.drains` such times.
 */
export function endOf(
  { child, stdout, stderr }: ChildWithPipes,
  isOom: (exitCode: number | null, signal: string | null) => boolean,
): Promise<ProcessEnd> {
  return new Promise((resolve) => {
    let drain: NodeJS.Timeout | undefined;
    let settled = false;
    function settle(exitCode: number | null, signal: string | null): void {
      if (settled) return;
      settled = true;
      clearTimeout(drain);
      stdout.destroy();
      stderr.destroy();
      resolve({ exitCode, signal, oom: isOom(exitCode, signal) });
    }
    child.once('error', () => settle(null, null));
    child.once('exit', (exitCode, signal) => {
      let seen = NaN;
      const look = (left: number): void => {
        const { length, unread } = arrived([stdout, stderr]);
        if (left === 0 || (length === seen && unread === 0)) return settle(exitCode, signal);
        seen = length;
        // After the timers of a busy process, its pipes are read: then it is known whether there is more.
        drain = setTimeout(() => setImmediate(look, left - 1), limits.drainMs);
      };
      look(limits.drains);
    });
    child.once('close', settle);
  });
}

/** The bytes that pipes have brought so far, and how many of them are not read yet. */
function arrived(pipes: readonly (Readable & { readonly bytesRead?: number })[]): { length: number; unread: number } {
  const sum = (of: (pipe: (typeof pipes)[number]) => number): number =>
    pipes.reduce((total, pipe) => total + of(pipe), 0);
  return { length: sum(({ bytesRead = 0 }) => bytesRead), unread: sum(({ readableLength }) => readableLength) };
}

/** A process without children, or whose children end with it. */
export function singleProcess(
  pipes: ChildWithPipes,
  isOom: (exitCode: number | null, signal: string | null) => boolean,
): SandboxProcess {
  return {
    stdout: pipes.stdout,
    stderr: pipes.stderr,
    ended: endOf(pipes, isOom),
    terminate: () => void pipes.child.kill('SIGTERM'),
    kill: () => void pipes.child.kill('SIGKILL'),
  };
}
