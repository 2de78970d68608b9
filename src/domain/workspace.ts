/**
 * The workspace: the files of a session that its programs share (C7). The session's object has the truth, a table from
 * path to the hash of the bytes; a runner only caches the bytes.
 *
 * An action starts with a snapshot of all files. When its program has ended by itself, the files that it changed are
 * committed together: for each path the last writer wins. A program that was stopped changes nothing.
 */
import { limits } from './limits.ts';

/** Where programs see the files. */
export const WORKSPACE_FOLDER = '/workspace';

/** Where the files of messages appear, in the workspace (C2). */
export const UPLOADS_FOLDER = 'uploads';

/** Where the files of a loaded skill appear, in the workspace (C8). */
export const SKILLS_FOLDER = 'skills';

export interface WorkspaceFile {
  /** Relative to the workspace, with slashes: `data/table.csv`. */
  readonly path: string;
  /** Of the bytes, in lower-case hexadecimal. */
  readonly sha256: string;
  /** Bytes. */
  readonly size: number;
  /** Whether it may be executed as a program; other permissions are not kept. */
  readonly executable: boolean;
  /** Epoch milliseconds. */
  readonly modifiedAt: number;
}

/** What an action changed at one path. `base`: the hash that the path had in its snapshot; null: there was no file. */
export type WorkspaceChange =
  | {
      readonly path: string;
      readonly base: string | null;
      readonly sha256: string;
      readonly size: number;
      readonly executable: boolean;
    }
  | { readonly path: string; readonly base: string | null; readonly deleted: true };

/** What a program left in its workspace when it had ended by itself. */
export interface WorkspaceResult {
  readonly changes: readonly WorkspaceChange[];
  /** Entries that are not kept, such as links; at most `limits.workspaceSkippedShown` of them. */
  readonly skipped: readonly { readonly path: string; readonly reason: string }[];
  readonly skippedCount: number;
  /** If set, nothing can be kept and `changes` is empty. */
  readonly error: { readonly code: 'workspace_full' | 'workspace_lost'; readonly message: string } | null;
}

const encoder = new TextEncoder();

/**
 * Why a path cannot name a file of a workspace, or null if it can.
 *
 * Allowed: segments of 1 to 255 bytes of UTF-8, separated by single slashes, of any characters except control characters
 * and backslashes. Refused: `.` and `..`, empty segments, an absolute path, more than `limits.workspacePathBytes`.
 */
export function pathIssue(path: string): string | null {
  if (path === '') return 'it is empty';
  if (path.startsWith('/')) return 'it is absolute';
  // Also what a decoder makes of bytes that are not UTF-8.
  if (!path.isWellFormed() || path.includes('\uFFFD')) return 'it is not valid UTF-8';
  if (/[\p{Cc}\u2028\u2029\\]/u.test(path)) return 'it contains a control character or a backslash';
  if (encoder.encode(path).length > limits.workspacePathBytes)
    return `it is longer than ${limits.workspacePathBytes} bytes`;
  const segments = path.split('/');
  if (segments.length > limits.workspacePathDepth) return `it has more than ${limits.workspacePathDepth} levels`;
  for (const segment of segments) {
    if (segment === '') return 'it has an empty segment';
    if (segment === '.' || segment === '..') return 'it has a segment "." or ".."';
    if (encoder.encode(segment).length > limits.workspaceNameBytes)
      return `it has a name longer than ${limits.workspaceNameBytes} bytes`;
  }
  return null;
}
