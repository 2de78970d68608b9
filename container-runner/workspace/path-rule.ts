/** Which paths can name a file of a workspace (C7): the same rule as the Worker's, which the runner does not trust. */
import { limits } from '../limits.ts';

/**
 * Why a path cannot name a file of a workspace, or null if it can.
 *
 * Allowed: segments of 1 to 255 bytes of UTF-8, separated by single slashes, of any characters except control characters
 * and backslashes. Refused: `.` and `..`, empty segments, an absolute path, more than `limits.workspacePathBytes`.
 */
export function pathIssue(path: string): string | null {
  if (path === '') return 'it is empty';
  if (path.startsWith('/')) return 'it is absolute';
  // also what a decoder makes of bytes that are not UTF-8
  if (!path.isWellFormed() || path.includes('\uFFFD')) return 'it is not valid UTF-8';
  if (/[\p{Cc}\u2028\u2029\\]/u.test(path)) return 'it contains a control character or a backslash';
  if (Buffer.byteLength(path) > limits.workspacePathBytes) {
    return `it is longer than ${limits.workspacePathBytes} bytes`;
  }
  const segments = path.split('/');
  if (segments.length > limits.workspacePathDepth) return `it has more than ${limits.workspacePathDepth} levels`;
  for (const segment of segments) {
    if (segment === '') return 'it has an empty segment';
    if (segment === '.' || segment === '..') return 'it has a segment "." or ".."';
    if (Buffer.byteLength(segment) > limits.workspaceNameBytes) {
      return `it has a name longer than ${limits.workspaceNameBytes} bytes`;
    }
  }
  return null;
}

/** The folders above a path, the nearest first: `a/b/c` is below `a/b` and `a`. */
export function foldersAbove(path: string): string[] {
  const folders: string[] = [];
  for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) folders.push(path.slice(0, at));
  return folders;
}
