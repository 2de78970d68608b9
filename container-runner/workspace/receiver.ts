/**
 * Takes what the program of one job left in its workspace (C7), and compares it with the files that the job began with.
 *
 * Everything that arrives is hostile: the sandbox only relays it. Invariants:
 * 1. Only regular files with allowed paths are kept, each path once, and no file below another file. Other entries are
 *    skipped with a reason.
 * 2. A file of the job whose path is skipped, for example because it is a link now, stays unchanged.
 * 3. At most `limits.workspaceEntries` entries and `limits.workspaceRoomMb` of bytes are read, whatever was announced.
 * 4. A limit, a file that is not complete, or a missing end has an error as its result, without any change.
 */
import type { Readable } from 'node:stream';

import { limits } from '../limits.ts';
import type { FileCache } from './file-cache.ts';
import { foldersAbove, pathIssue } from './path-rule.ts';
import type { JobFile } from './request.ts';
import type { EntryKind, LeftEntry, WorkspaceReceiver } from './workspace.ts';

/** What a job changed, in the format of the API. `base`: the hash that the path had at the start; null: no file. */
export interface WireResult {
  readonly changes: readonly WireChange[];
  /** At most `limits.workspaceSkippedShown`. */
  readonly skipped: readonly { readonly path: string; readonly reason: string }[];
  readonly skipped_count: number;
  /** If set, nothing is kept and `changes` is empty. */
  readonly error: { readonly code: 'workspace_full' | 'workspace_lost'; readonly message: string } | null;
}

export type WireChange =
  | {
      readonly path: string;
      readonly base: string | null;
      readonly sha256: string;
      readonly size: number;
      readonly executable: boolean;
    }
  | { readonly path: string; readonly base: string; readonly deleted: true };

interface KeptFile {
  readonly sha256: string;
  readonly size: number;
  readonly executable: boolean;
}

const SKIPPED_KINDS: Readonly<Record<Exclude<EntryKind, 'file' | 'folder'>, string>> = {
  symlink: 'symbolic links are not kept',
  hardlink: 'hard links are not kept',
  device: 'devices are not kept',
  fifo: 'named pipes are not kept',
  socket: 'sockets are not kept',
  unknown: 'only regular files are kept',
};
const MEBIBYTE = 1_048_576;

/** A result without changes: of a program that did not start. */
export const UNCHANGED: WireResult = { changes: [], skipped: [], skipped_count: 0, error: null };

export class JobReceiver implements WorkspaceReceiver {
  readonly #cache: FileCache;
  readonly #session: string;
  readonly #base: ReadonlyMap<string, JobFile>;
  /** A workspace that is larger than the job allows may stay as it is, or shrink. */
  readonly #maxBytes: number;
  readonly #kept = new Map<string, KeptFile>();
  /** Paths of entries, and folders above kept files. */
  readonly #seen = new Set<string>();
  readonly #folders = new Set<string>();
  /** Folders that are entries, and folders with an entry. */
  readonly #leftFolders: string[] = [];
  readonly #usedFolders = new Set<string>();
  /** Files of the job that stay unchanged, because their path is skipped now. */
  readonly #retained = new Set<string>();
  readonly #skipped: { readonly path: string; readonly reason: string }[] = [];
  #skippedCount = 0;
  #entries = 0;
  /** Accepted files, also before their bytes have arrived. */
  #files = 0;
  #bytes = 0;
  #bytesRead = 0;
  #isComplete = false;
  #isClosed = false;
  #error: WireResult['error'] = null;

  /** @param maxBytes what all files may have together */
  constructor(cache: FileCache, session: string, base: readonly JobFile[], maxBytes: number) {
    this.#cache = cache;
    this.#session = session;
    this.#base = new Map(base.map((file) => [file.path, file]));
    this.#maxBytes = Math.max(maxBytes, sumOf(base));
  }

  /** Never rejects. */
  async entry(entry: LeftEntry, bytes: Readable | null): Promise<boolean> {
    // the stream may fail at any time, also when it is not read any more
    bytes?.on('error', () => undefined);
    try {
      const taken = !this.#isOver && (await this.#take(entry, bytes));
      if (taken && !this.#isOver) return true;
    } catch (fault) {
      this.#lose(`the file ${shown(entry.path)} could not be read: ${messageOf(fault)}`);
    }
    bytes?.destroy();
    return false;
  }

  complete(): void {
    this.#isComplete = true;
  }

  /** The result of a program that ended by itself. Later entries are refused. */
  result(): WireResult {
    this.#isClosed = true;
    if (!this.#isComplete) this.#lose('it ended before it had sent all of them');
    const staying = [...this.#base.values()].filter(({ path }) => !this.#kept.has(path) && this.#stays(path));
    const files = this.#files + staying.length;
    const bytes = this.#bytes + sumOf(staying);
    if (files > limits.workspaceFiles) this.#fill(`left ${number(files)} files`, limits.workspaceFiles);
    if (bytes > this.#maxBytes) this.#fill(`left files with ${number(bytes)} bytes`, this.#maxBytes);
    if (this.#error !== null) return { ...UNCHANGED, error: this.#error };
    for (const folder of this.#leftFolders) {
      if (!this.#usedFolders.has(folder)) this.#skip(folder, 'empty folders are not kept');
    }
    const changes: WireChange[] = [];
    for (const [path, file] of this.#kept) {
      const base = this.#base.get(path);
      if (base?.sha256 === file.sha256 && base.executable === file.executable) continue;
      changes.push({ path, base: base?.sha256 ?? null, ...file });
    }
    const remaining = new Set(staying.map(({ path }) => path));
    for (const { path, sha256: base } of this.#base.values()) {
      if (!this.#kept.has(path) && !remaining.has(path)) changes.push({ path, base, deleted: true });
    }
    return { changes, skipped: this.#skipped, skipped_count: this.#skippedCount, error: null };
  }

  get #isOver(): boolean {
    return this.#isClosed || this.#error !== null;
  }

  /** @returns false: a limit is exceeded */
  async #take(entry: LeftEntry, bytes: Readable | null): Promise<boolean> {
    this.#entries += 1;
    if (this.#entries > limits.workspaceEntries) {
      return this.#fill(`left at least ${number(this.#entries)} entries`, limits.workspaceEntries);
    }
    const issue = this.#issueOf(entry);
    if (issue !== null) {
      if (issue !== '') this.#skip(entry.path, issue);
      return await this.#drain(bytes);
    }
    const { path, size, executable } = entry;
    if (!Number.isSafeInteger(size) || size < 0) return this.#lose(`the size of the file ${shown(path)} is not valid`);
    if (size > limits.workspaceFileBytes) {
      return this.#fill(`left the file ${shown(path)} with ${number(size)} bytes`, limits.workspaceFileBytes);
    }
    this.#files += 1;
    if (this.#files > limits.workspaceFiles) {
      return this.#fill(`left at least ${number(this.#files)} files`, limits.workspaceFiles);
    }
    this.#bytes += size;
    if (this.#bytes > this.#maxBytes) {
      return this.#fill(`left files with at least ${number(this.#bytes)} bytes`, this.#maxBytes);
    }
    this.#seen.add(path);
    for (const folder of foldersAbove(path)) this.#folders.add(folder);
    const stored = await this.#cache.put(this.#session, bytes ?? nothing(), size);
    if (stored?.size !== size) {
      const actual = stored === null ? 'more' : number(stored.size);
      return this.#lose(`the file ${shown(path)} was announced with ${number(size)} bytes and has ${actual}`);
    }
    this.#bytesRead += size;
    this.#kept.set(path, { ...stored, executable: executable === true });
    return true;
  }

  /** Why an entry is skipped; '' = without a mention; null = it is a file that may be kept. */
  #issueOf({ path, kind }: LeftEntry): string | null {
    const issue = pathIssue(path);
    if (issue !== null) return `its path cannot be kept: ${issue}`;
    const above = foldersAbove(path);
    if (above[0] !== undefined) this.#usedFolders.add(above[0]);
    if (kind === 'folder') {
      this.#leftFolders.push(path);
      return '';
    }
    if (this.#seen.has(path)) return 'its path is a duplicate';
    if (kind !== 'file') {
      this.#seen.add(path);
      this.#retained.add(path);
      return Object.hasOwn(SKIPPED_KINDS, kind) ? SKIPPED_KINDS[kind] : SKIPPED_KINDS.unknown;
    }
    const file = above.find((folder) => this.#seen.has(folder));
    if (file !== undefined) return `it is below ${shown(file)}, which is not a folder`;
    return this.#folders.has(path) ? 'its path is also a folder' : null;
  }

  /** Whether a file of the job that was not left stays: it is skipped, or below something that is. */
  #stays(path: string): boolean {
    if (this.#folders.has(path)) return false;
    const above = foldersAbove(path);
    if (above.some((folder) => this.#kept.has(folder))) return false;
    return this.#retained.has(path) || above.some((folder) => this.#retained.has(folder));
  }

  #skip(path: string, reason: string): void {
    this.#skippedCount += 1;
    if (this.#skipped.length < limits.workspaceSkippedShown) this.#skipped.push({ path: cut(path), reason });
  }

  /** Reads the bytes of an entry that is not kept, so that the sandbox can go on. */
  async #drain(bytes: Readable | null): Promise<boolean> {
    if (bytes === null) return true;
    for await (const chunk of bytes as AsyncIterable<Uint8Array>) {
      this.#bytesRead += chunk.length;
      if (this.#bytesRead > limits.workspaceRoomMb * MEBIBYTE) {
        return this.#fill(`left more than ${limits.workspaceRoomMb} MiB`, this.#maxBytes);
      }
    }
    return true;
  }

  #fill(what: string, allowed: number): false {
    const message = `The program ${what} in its workspace (allowed: ${number(allowed)}); none of its changes are kept`;
    this.#error ??= { code: 'workspace_full', message };
    return false;
  }

  #lose(why: string): false {
    const message = `The files of the workspace could not be read from the sandbox: ${why}. No changes are kept`;
    this.#error ??= { code: 'workspace_lost', message };
    return false;
  }
}

function sumOf(files: readonly JobFile[]): number {
  return files.reduce((sum, { size }) => sum + size, 0);
}

async function* nothing(): AsyncGenerator<Uint8Array> {
  // a file without bytes
}

function number(value: number): string {
  return value.toLocaleString('en-US');
}

/** A path as plain text: hostile ones contain line breaks, and have any length. */
function cut(path: string): string {
  const plain = path
    .slice(0, limits.workspacePathBytes)
    .replaceAll(/[\p{Cc}\u2028\u2029]/gu, '\uFFFD')
    .toWellFormed();
  return path.length > limits.workspacePathBytes ? `${plain}…` : plain;
}

function shown(path: string): string {
  return JSON.stringify(cut(path));
}

function messageOf(fault: unknown): string {
  return fault instanceof Error ? fault.message : String(fault);
}
