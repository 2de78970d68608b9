/** Protocol between the runner and an embedded interpreter: one JSON document in, raw output out, one byte for "ready". */
import fs from 'node:fs';

import type { Launch } from '../sandbox/sandbox.ts';

/** The job; the runner writes it to standard input and closes it. */
export type GuestJob = Pick<
  Launch,
  'entry' | 'source' | 'inputsJson' | 'args' | 'stdin' | 'env' | 'timeoutMs' | 'memoryMb'
>;

/** File descriptor of the pipe for the "ready" byte. */
const READY_FD = 3;

export function sayReady(): void {
  fs.writeSync(READY_FD, 'r');
  fs.closeSync(READY_FD);
}

/** Waits for the job. Null if the runner is gone or has cancelled it. */
export async function receiveJob(): Promise<GuestJob | null> {
  let text = '';
  process.stdin.setEncoding('utf8');
  for await (const chunk of process.stdin) text += String(chunk);
  return text === '' ? null : (JSON.parse(text) as GuestJob);
}

const sleeper = new Int32Array(new SharedArrayBuffer(4));

/** Writes everything, waiting while the pipe is full. */
export function writeAll(fd: 1 | 2, bytes: Uint8Array): void {
  for (let offset = 0; offset < bytes.length;) {
    try {
      offset += fs.writeSync(fd, bytes, offset);
    } catch (fault) {
      if (!(fault instanceof Error && 'code' in fault && fault.code === 'EAGAIN')) throw fault;
      Atomics.wait(sleeper, 0, 0, 1);
    }
  }
}
