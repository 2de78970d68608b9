/** Where a file of a message appears in the workspace (C7). */
import { limits } from '../../domain/limits.ts';
import { pathIssue, UPLOADS_FOLDER } from '../../domain/workspace.ts';

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
  for (const chars = Array.from(stem); chars.length > 0; chars.pop()) {
    const path = `${UPLOADS_FOLDER}/${chars.join('')}${suffix}${extension}`;
    if (pathIssue(path) === null) return path;
  }
  return `${UPLOADS_FOLDER}/file${suffix}`;
}
