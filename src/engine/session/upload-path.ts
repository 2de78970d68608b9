/** Where a file of a message appears in the workspace (C7). */
import { limits } from '../../domain/limits.ts';
import { UPLOADS_FOLDER } from '../../domain/workspace.ts';
import type { WorkspaceFile } from '../../domain/workspace.ts';

const encoder = new TextEncoder();

/**
 * `uploads/table.csv`, or `uploads/table-2.csv`. The result is always a path that is allowed: a long name is shortened.
 *
 * @param name as the client wrote it: hostile input
 * @param number 1 = without a number
 */
export function uploadPath(name: string, number: number): string {
  const last = name.split(/[/\\]/).at(-1) ?? '';
  const plain = last
    .replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029\uFFFD<>\uFF1C\uFF1E\uFE64\uFE65:"|?*]/gu, '_')
    .trim()
    .slice(-limits.fileNameChars)
    .toWellFormed()
    .replaceAll('\uFFFD', '_');
  const safe = plain === '.' || plain === '..' ? '' : plain;
  const dot = safe.lastIndexOf('.');
  const [stem, extension] = dot <= 0 ? [safe, ''] : [safe.slice(0, dot), safe.slice(dot)];
  const suffix = number === 1 ? '' : `-${number}`;
  const room = Math.max(0, limits.workspaceNameBytes - encoder.encode(`${suffix}${extension}`).length);
  // Whole characters.
  const { read: fits } = encoder.encodeInto(stem, new Uint8Array(room));
  return `${UPLOADS_FOLDER}/${fits === 0 ? `file${suffix}` : `${stem.slice(0, fits)}${suffix}${extension}`}`;
}

/**
 * The path of an upload: its name, or a numbered one if another file or a folder has it. The same file has the same path.
 *
 * @param name as the client wrote it
 * @param files of the workspace
 */
export function freePath(name: string, sha256: string, files: readonly WorkspaceFile[]): string {
  const hashes = new Map<string, string | null>();
  for (const { path, sha256: hash } of files) {
    if (!path.startsWith(`${UPLOADS_FOLDER}/`)) continue;
    const end = path.indexOf('/', UPLOADS_FOLDER.length + 1);
    // Null: a folder.
    hashes.set(end < 0 ? path : path.slice(0, end), end < 0 ? hash : null);
  }
  for (let number = 1; ; number += 1) {
    const path = uploadPath(name, number);
    if (!hashes.has(path) || hashes.get(path) === sha256) return path;
  }
}
