/** Files of workspaces as the Worker sends and reads them. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { StateFolder } from '../../state.ts';
import { type CacheLimits, FileCache } from '../../workspace/file-cache.ts';
import { frameHead } from '../../workspace/frames.ts';
import type { TestRunner } from './test-runner.ts';

export interface Frame {
  readonly sha256: string;
  /** Null: the runner does not have it. */
  readonly bytes: string | null;
}

export function sha256Of(bytes: string | Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** The body of an upload. */
export function framesOf(...files: readonly (string | Uint8Array)[]): Uint8Array {
  return Buffer.concat(
    files.flatMap((file) => [frameHead(sha256Of(file), Buffer.byteLength(file)), Buffer.from(file)]),
  );
}

export async function upload(
  runner: TestRunner,
  session: string,
  ...files: readonly (string | Uint8Array)[]
): Promise<Response> {
  return await runner.ask('PUT', `/workspaces/${session}/files`, framesOf(...files));
}

export async function download(runner: TestRunner, session: string, hashes: readonly string[]): Promise<Frame[]> {
  const answer = await runner.ask('POST', `/workspaces/${session}/files/read`, { hashes });
  if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
  return parseFrames(Buffer.from(await answer.arrayBuffer()));
}

function parseFrames(body: Buffer): Frame[] {
  const frames: Frame[] = [];
  for (let at = 0; at < body.length;) {
    const sha256 = body.toString('hex', at, at + 32);
    const size = body.readUInt32BE(at + 32);
    at += 36;
    const isHere = size !== 0xffff_ffff;
    frames.push({ sha256, bytes: isHere ? body.toString('latin1', at, at + size) : null });
    if (isHere) at += size;
  }
  return frames;
}

/** A file of a job request. */
export function jobFile(file: string, bytes: string, executable?: boolean): Record<string, unknown> {
  const size = Buffer.byteLength(bytes);
  return {
    path: file,
    sha256: sha256Of(bytes),
    size,
    modified_at: 1_000,
    ...(executable === undefined ? {} : { executable }),
  };
}

export interface CacheKit {
  readonly stateDir: string;
  /** Where a session's file is. */
  fileOf(session: string, bytes: string): string;
  open(now?: () => number, limits?: CacheLimits): FileCache;
  put(cache: FileCache, session: string, bytes: string): Promise<string>;
  /** All files below the folder of the cache. */
  onDisk(): string[];
  close(): void;
}

export function cacheKit(): CacheKit {
  const stateDir = fs.mkdtempSync(path.join(os.tmpdir(), 'file-cache-'));
  const root = path.join(stateDir, 'runner', 'workspaces');
  return {
    stateDir,
    fileOf: (session, bytes) => path.join(root, sha256Of(session), sha256Of(bytes)),
    open(now = Date.now, limits = undefined) {
      const state = new StateFolder(stateDir, { now, onSetAside: () => undefined });
      state.create();
      return new FileCache(state, now, limits);
    },
    async put(cache, session, bytes) {
      const stored = await cache.put(session, chunks(bytes), bytes.length);
      if (stored === null) throw new Error('too long');
      return stored.sha256;
    },
    onDisk() {
      const entries = fs.readdirSync(root, { withFileTypes: true, recursive: true });
      return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
    },
    close: () => fs.rmSync(stateDir, { recursive: true, force: true }),
  };
}

// oxlint-disable-next-line require-await -- a stream
async function* chunks(text: string): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text, 'latin1');
  for (let at = 0; at < bytes.length; at += 100_000) yield bytes.subarray(at, at + 100_000);
}
