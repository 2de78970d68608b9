/**
 * The files that a Dockerfile copies from its folder (R5). Only these become part of the definition: a folder may contain
 * much that the image does not need.
 */
import { limits } from '../../domain/limits.ts';
import type { FieldPath } from '../check/problem.ts';
import { normalPath } from '../read/paths.ts';
import type { BuildContext } from './build-base.ts';

type Files = Pick<BuildContext, 'addIssue' | 'readFile' | 'listFiles'>;

export interface ImageContext {
  /** Relative to the manifest. */
  readonly folder: string;
  /** Relative to the folder. */
  readonly dockerfile: string;
  /** The field that issues are reported at. */
  readonly field: FieldPath;
}

/** Files that belong to the author's tools, in folders that are copied as a whole. */
const NOT_COPIED = /(?:^|\/)(?:\.git|node_modules|__pycache__)\//;

/** The Dockerfile, as `Dockerfile`, and the copied files by their path in the folder. */
export function filesOfContext({ folder, dockerfile, field }: ImageContext, context: Files): Record<string, string> {
  const text = context.readFile(joined(folder, dockerfile), field);
  if (text === null) return {};
  const wanted = new Set<string>();
  let all: readonly string[] | null = null;
  for (const source of new Set(copiedIn(text))) {
    const path = normalPath(source.replace(/^\/+/, ''));
    const below = (all ??= context.listFiles(folder));
    const found = below.filter((name) => isIn(name, path) && (name === path || !NOT_COPIED.test(name)));
    for (const name of found) wanted.add(name);
    if (below.length > limits.contextFiles) {
      context.addIssue(field, `the folder "${folder}" has more than ${limits.contextFiles} files; use a smaller one`);
      return {};
    }
    if (found.length === 0) {
      context.addIssue(field, `${dockerfile} copies "${source}", but "${folder}" has no such text file`);
    }
  }
  const files: Record<string, string> = {};
  for (const name of wanted) {
    const content = name === dockerfile ? null : context.readFile(joined(folder, name), field);
    if (content !== null) files[name] = content;
  }
  return { ...files, Dockerfile: text };
}

/** Joins paths that are relative to the manifest. */
export function joined(folder: string, path: string): string {
  return normalPath(folder === '' ? path : `${folder}/${path}`) || '.';
}

/** `.` contains every file; `app` contains `app` and `app/main.py`; `*.txt` contains `a.txt`. */
function isIn(name: string, path: string): boolean {
  if (path === '' || name === path || name.startsWith(`${path}/`)) return true;
  if (!/[*?]/.test(path)) return false;
  const steps = path.split('/');
  const parts = name.split('/');
  return parts.length >= steps.length && steps.every((step, index) => matches(parts[index] ?? '', step));
}

/** `*` and `?` in one name; compares from both ends, so that it takes linear time. */
function matches(name: string, pattern: string): boolean {
  const pieces = pattern.replaceAll('?', '*').split('*');
  const [first = '', ...rest] = pieces;
  const last = rest.pop() ?? '';
  if (!name.startsWith(first) || !name.endsWith(last)) return false;
  let at = first.length;
  for (const piece of rest) {
    const found = name.indexOf(piece, at);
    if (found < 0) return false;
    at = found + piece.length;
  }
  return at <= name.length - last.length;
}

/** The sources of every COPY from the folder, as written. */
function copiedIn(dockerfile: string): string[] {
  const lines = dockerfile.replaceAll(/\\[ \t]*\r?\n/g, ' ').split(/\r?\n/);
  return lines.flatMap((line) => {
    const rest = /^\s*(?:COPY|ADD)\s+(\S[^]*)$/i.exec(line)?.[1];
    if (rest === undefined || /(?:^|\s)--from=/.test(rest)) return [];
    const plain = rest.replaceAll(/(?:^|\s)--\S+/g, ' ').trim();
    const words = plain.startsWith('[') ? listOf(plain) : plain.split(/\s+/);
    return words.slice(0, -1).filter((word) => !/^[a-z]+:\/\//i.test(word));
  });
}

function listOf(text: string): string[] {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
  } catch {
    return [];
  }
}
