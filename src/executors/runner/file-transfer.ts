/**
 * The files of a workspace on their way to a runner and back (C7): as frames, each with the hash of the bytes (32 bytes),
 * their number (4 bytes, big endian), and the bytes.
 */
import { EngineError } from '../../domain/errors.ts';
import { isJsonObject, type Json } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { JobWorkspace } from '../../domain/ports/runner.ts';
import { pathIssue } from '../../domain/workspace.ts';
import type { WorkspaceChange, WorkspaceResult } from '../../domain/workspace.ts';
import { joinedBytes } from '../../domain/bytes.ts';

const HASH_BYTES = 32;
const HEAD_BYTES = HASH_BYTES + 4;
/** The length of a frame whose bytes the runner does not have. */
const ABSENT = 0xffff_ffff;
const HASH = /^[0-9a-f]{64}$/;

/** Sends a signed request to the runner, and returns its answer. @throws EngineError if it refuses, or does not answer */
export type Send = (method: 'PUT' | 'POST', target: string, body: string | Uint8Array) => Promise<Uint8Array>;

function filesPath(session: string): string {
  return `/workspaces/${encodeURIComponent(session)}/files`;
}

/**
 * Sends the files of a job that the runner does not have, in requests of at most `limits.workspaceTransferBytes` or one file.
 *
 * @throws EngineError if a request fails, or `workspace.read` does
 */
export async function sendFiles(
  session: string,
  { files, read }: JobWorkspace,
  missing: ReadonlySet<string>,
  send: Send,
): Promise<void> {
  const sizes = new Map(files.filter(({ sha256 }) => missing.has(sha256)).map(({ sha256, size }) => [sha256, size]));
  for (const batch of batchesOf(sizes)) {
    const frames: Uint8Array[] = [];
    for (let at = 0; at < batch.length; at += limits.objectsAtOnce) {
      const some = batch.slice(at, at + limits.objectsAtOnce);
      const contents = await Promise.all(some.map((sha256) => read(sha256)));
      for (const [index, content] of contents.entries())
        frames.push(headOf(some[index] ?? '', content.length), content);
    }
    await send('PUT', filesPath(session), joinedBytes(frames));
  }
}

/** The hashes of the files of each request. */
function batchesOf(sizes: ReadonlyMap<string, number>): string[][] {
  const batches: string[][] = [];
  let bytes = Infinity;
  for (const [sha256, size] of sizes) {
    const length = size + HEAD_BYTES;
    if (bytes + length > limits.workspaceTransferBytes) {
      batches.push([]);
      bytes = 0;
    }
    batches.at(-1)?.push(sha256);
    bytes += length;
  }
  return batches;
}

/**
 * Reads files from the runner, in any order.
 *
 * @throws EngineError `runner_unavailable` if the runner does not have one, or the connection fails
 */
export async function* readFiles(
  session: string,
  hashes: readonly string[],
  send: Send,
): AsyncGenerator<readonly [sha256: string, bytes: Uint8Array]> {
  let left = [...hashes];
  while (left.length > 0) {
    const body = JSON.stringify({ hashes: left });
    const frames = framesOf(await send('POST', `${filesPath(session)}/read`, body));
    const taken = new Set<string>();
    for (const [sha256, bytes] of frames) {
      if (bytes === null) throw absent(`it no longer has ${sha256.slice(0, 12)}`);
      taken.add(sha256);
      yield [sha256, bytes];
    }
    const before = left.length;
    left = left.filter((sha256) => !taken.has(sha256));
    if (left.length === before) throw absent('its answer is empty');
  }
}

function absent(why: string): EngineError {
  return new EngineError('runner_unavailable', `The runner did not send the files of the job: ${why}`);
}

function headOf(sha256: string, length: number): Uint8Array {
  const head = new Uint8Array(HEAD_BYTES);
  for (let at = 0; at < HASH_BYTES; at += 1) head[at] = Number.parseInt(sha256.slice(at * 2, at * 2 + 2), 16);
  new DataView(head.buffer).setUint32(HASH_BYTES, length);
  return head;
}

/** @throws EngineError `runner_unavailable` for an answer that ends in the middle of a frame */
function framesOf(bytes: Uint8Array): (readonly [string, Uint8Array | null])[] {
  const frames: (readonly [string, Uint8Array | null])[] = [];
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < bytes.length;) {
    if (at + HEAD_BYTES > bytes.length) throw absent('its answer is cut');
    const sha256 = Array.from(bytes.subarray(at, at + HASH_BYTES), (byte) => byte.toString(16).padStart(2, '0')).join(
      '',
    );
    const length = view.getUint32(at + HASH_BYTES);
    at += HEAD_BYTES;
    if (length === ABSENT) {
      frames.push([sha256, null]);
      continue;
    }
    if (at + length > bytes.length) throw absent('its answer is cut');
    frames.push([sha256, bytes.subarray(at, at + length)]);
    at += length;
  }
  return frames;
}

/** The files of a job in the format of its request. */
export function wireWorkspace({ files, maxBytes }: JobWorkspace): Json {
  return {
    files: files.map(({ path, sha256, size, executable, modifiedAt }) => ({
      path,
      sha256,
      size,
      ...(executable ? { executable } : {}),
      modified_at: modifiedAt,
    })),
    max_bytes: maxBytes,
  };
}

/** What a program left, as the runner reports it; null if the report is not valid. Its texts are cut. */
export function workspaceResultOf(json: Json | undefined): WorkspaceResult | null {
  if (!isJsonObject(json) || !Array.isArray(json['changes'])) return null;
  // Each file of the snapshot may be deleted, and as many files written.
  if (json['changes'].length > 2 * limits.workspaceFiles) return null;
  const changes = json['changes'].map(changeOf).filter((change) => change !== null);
  const paths = new Set(changes.map(({ path }) => path));
  if (paths.size < json['changes'].length) return null;
  const skipped = Array.isArray(json['skipped']) ? json['skipped'].filter(isJsonObject) : [];
  const { error, skipped_count: count } = json;
  return {
    changes,
    skipped: skipped
      .slice(0, limits.workspaceSkippedShown)
      .map(({ path, reason }) => ({ path: cut(path), reason: cut(reason) })),
    skippedCount: typeof count === 'number' ? count : skipped.length,
    error: isJsonObject(error)
      ? {
          code: error['code'] === 'workspace_full' ? 'workspace_full' : 'workspace_lost',
          message: cut(error['message']),
        }
      : null,
  };
}

/** A text of the runner; honest ones are short, but name a path. */
function cut(text: Json | undefined): string {
  return String(text).slice(0, 2 * limits.workspacePathBytes);
}

function changeOf(json: Json): WorkspaceChange | null {
  if (!isJsonObject(json)) return null;
  const { path, base, sha256, size, executable, deleted } = json;
  if (typeof path !== 'string' || pathIssue(path) !== null) return null;
  if (base !== null && (typeof base !== 'string' || !HASH.test(base))) return null;
  if (deleted === true) return { path, base, deleted };
  if (typeof sha256 !== 'string' || !HASH.test(sha256) || typeof size !== 'number') return null;
  if (!Number.isInteger(size) || size < 0 || size > limits.workspaceFileBytes) return null;
  return { path, base, sha256, size, executable: executable === true };
}
