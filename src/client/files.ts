/**
 * The files of a session's workspace, which its programs see in `/workspace` (C7). Not a part of index.ts, so that pages
 * without files do not load it:
 *
 * ```ts
 * import { readFile, writeFile } from './src/client/files.ts';
 *
 * await writeFile(session, 'data/table.csv', 'a,b\n1,2\n');
 * const text = await (await readFile(session, 'data/table.csv')).text();
 * ```
 */
import type { AbortOptions } from './abort-options.ts';
import type { FileContent } from './connection.ts';
import { CortexError } from './error.ts';
import type { Session } from './session.ts';

export type { FileContent } from './connection.ts';

export interface WorkspaceFile {
  /** Relative to the workspace, with slashes. */
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  /** Epoch milliseconds. */
  readonly modified_at: number;
  /** Of the content, in hexadecimal: what `ifMatch` takes. */
  readonly sha256: string;
  readonly executable?: true;
}

export interface WorkspaceFiles {
  /** In the order of their paths. */
  readonly files: readonly WorkspaceFile[];
  /** Of all files of the workspace. */
  readonly bytes: number;
  readonly max_bytes: number;
}

export interface FolderOptions extends AbortOptions {
  /** Only the files in this folder. */
  readonly prefix?: string | undefined;
}

export interface ReadFileOptions extends AbortOptions {
  /** One range of bytes, such as `bytes=0-99`. */
  readonly range?: string;
}

export interface ChangeFileOptions extends AbortOptions {
  /** The `sha256` that the file must have; otherwise the error is `precondition_failed`. */
  readonly ifMatch?: string;
}

export interface WriteFileOptions extends ChangeFileOptions {
  /** The file must not exist; otherwise the error is `precondition_failed`. */
  readonly ifNew?: boolean;
  /** Default: as before; a new file is not executable. */
  readonly executable?: boolean;
}

export interface RemoveFileOptions extends ChangeFileOptions {
  /** Also a folder, with everything in it. */
  readonly recursive?: boolean;
}

/** All files of the session. @throws CortexError */
export async function listFiles(session: Session, { prefix, signal }: FolderOptions = {}): Promise<WorkspaceFiles> {
  return await session.connection.json(pathOf(session), { query: { prefix }, signal });
}

/** Downloads a file: `(await readFile(session, path)).blob()`. @throws CortexError, for example `unknown_file` */
export async function readFile(session: Session, path: string, options: ReadFileOptions = {}): Promise<Response> {
  const { range, signal } = options;
  const headers: Record<string, string> = range === undefined ? {} : { range };
  return await session.connection.response(pathOf(session, path), { headers, signal });
}

/** Downloads all files as a ZIP file. Its body ends with an error if a file is changed meanwhile. @throws CortexError */
export async function archiveFiles(session: Session, { prefix, signal }: FolderOptions = {}): Promise<Response> {
  return await session.connection.response(pathOf(session), { query: { archive: 'zip', prefix }, signal });
}

/**
 * Writes a file, a new one or instead of another one.
 *
 * @throws CortexError, for example `precondition_failed` or `workspace_full`
 */
export async function writeFile(
  session: Session,
  path: string,
  content: FileContent,
  options: WriteFileOptions = {},
): Promise<WorkspaceFile> {
  const { ifMatch, ifNew = false, executable, signal } = options;
  let isRepeated = false;
  try {
    return await session.connection.json(pathOf(session, path), {
      method: 'PUT',
      query: { executable },
      raw: content,
      headers: { ...matching(ifMatch), ...(ifNew ? { 'if-none-match': '*' } : {}) },
      signal,
      onRetry: () => (isRepeated = true),
    });
  } catch (fault) {
    if (!isRepeated || !(fault instanceof CortexError) || fault.code !== 'precondition_failed') throw fault;
    // The answer to an earlier attempt may be lost: then the file has this content.
    const { files } = await listFiles(session, { signal });
    const found = files.find((file) => file.path === path);
    if (found === undefined || found.sha256 !== (await sha256Of(content))) throw fault;
    return found;
  }
}

/** Deletes a file, or a folder with everything in it. @returns the deleted paths @throws CortexError */
export async function removeFile(session: Session, path: string, options: RemoveFileOptions = {}): Promise<string[]> {
  const { recursive, ifMatch, signal } = options;
  const answer = await session.connection.json<{ deleted: string[] } | null>(pathOf(session, path), {
    method: 'DELETE',
    query: { recursive },
    headers: matching(ifMatch),
    // An earlier attempt has deleted it, and its answer was lost.
    isDone: ({ code }) => code === 'unknown_file',
    signal,
  });
  return answer?.deleted ?? [path];
}

/** @param path absent: of all files */
function pathOf({ id }: Session, path?: string): string {
  const names = path?.split('/') ?? [];
  return `/agent/session/${[id, 'files', ...names].map(encodeURIComponent).join('/')}`;
}

function matching(sha256: string | undefined): Record<string, string> {
  return sha256 === undefined ? {} : { 'if-match': `"${sha256}"` };
}

async function sha256Of(content: FileContent): Promise<string> {
  const hash = await crypto.subtle.digest('SHA-256', await new Response(content).arrayBuffer());
  return [...new Uint8Array(hash)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
