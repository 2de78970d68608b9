/**
 * Protocol between the runner and an embedded interpreter. On standard input: a line with the length of a JSON document,
 * the document, and the bytes of the files of the workspace. Out: raw output; on a descriptor of its own, one byte for
 * "ready", and an archive of the workspace.
 */
import { Buffer } from 'node:buffer';
import fs from 'node:fs';

import type { GuestFile } from '../sandbox/given-files.ts';
import type { Launch } from '../sandbox/sandbox.ts';

/** The job; the runner writes it to standard input and closes it. */
export type GuestJob = Pick<
  Launch,
  'entry' | 'source' | 'inputsJson' | 'args' | 'stdin' | 'env' | 'timeoutMs' | 'memoryMb'
> & {
  /** Null: the program has no workspace. */
  readonly workspace: { readonly folder: string; readonly files: readonly GuestFile[] } | null;
};

export interface ReceivedFile {
  /** Absolute. */
  readonly path: string;
  readonly content: Uint8Array;
  readonly mode: number;
  readonly modifiedAt: Date;
}

export interface ReceivedJob extends GuestJob {
  readonly files: readonly ReceivedFile[];
}

/** File descriptor of the pipe for the "ready" byte and the archive of the workspace. */
export const CHANNEL_FD = 3;

export function sayReady(): void {
  fs.writeSync(CHANNEL_FD, 'r');
}

/** Waits for the job. Null if the runner is gone or has cancelled it. */
export async function receiveJob(): Promise<ReceivedJob | null> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
  const all = Buffer.concat(chunks);
  const line = all.indexOf('\n');
  if (line < 0) return null;
  let at = line + 1 + Number(all.toString('latin1', 0, line));
  const job = JSON.parse(all.toString('utf8', line + 1, at)) as GuestJob;
  if (job.workspace === null) fs.closeSync(CHANNEL_FD);
  const { folder, files } = job.workspace ?? { folder: '', files: [] };
  return {
    ...job,
    files: files.map(([path, size, executable, seconds]) => {
      const content = all.subarray(at, at + size);
      at += size;
      // the runner could not read a file; it ends this process
      if (content.length < size) process.exit(126);
      return {
        path: `${folder}/${path}`,
        content,
        mode: executable ? 0o755 : 0o644,
        modifiedAt: new Date(seconds * 1_000),
      };
    }),
  };
}

const sleeper = new Int32Array(new SharedArrayBuffer(4));

/** Writes everything, waiting while the pipe is full. */
export function writeAll(fd: number, bytes: Uint8Array): void {
  for (let offset = 0; offset < bytes.length;) {
    try {
      offset += fs.writeSync(fd, bytes, offset);
    } catch (fault) {
      if (!(fault instanceof Error && 'code' in fault && fault.code === 'EAGAIN')) throw fault;
      Atomics.wait(sleeper, 0, 0, 1);
    }
  }
}
