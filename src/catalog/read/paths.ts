/** Resolves paths in manifests to files of a folder (M2). */

export function folderOf(file: string): string {
  return file.slice(0, Math.max(0, file.lastIndexOf('/')));
}

/** Resolves `path` relative to the folder of `file`, including `.` and `..`. */
export function relativeTo(file: string, path: string): string {
  const folder = file.slice(0, file.lastIndexOf('/') + 1);
  return normalPath(/^([/\\]|[A-Za-z]:)/.test(path) ? path : `${folder}${path}`);
}

export function normalPath(path: string): string {
  const steps: string[] = [];
  for (const step of path.replaceAll('\\', '/').split('/')) {
    if (step === '' || step === '.') continue;
    if (step === '..' && steps.length > 0 && steps.at(-1) !== '..') steps.pop();
    else steps.push(step);
  }
  return `${path.startsWith('/') ? '/' : ''}${steps.join('/')}`;
}

/** Finds files by path, or by the end of their path. */
export class PathIndex {
  readonly #paths: ReadonlySet<string>;
  /** Files by the end of their path; null if there are several. Created at the first absolute path. */
  #ends: Map<string, string | null> | null = null;
  /** In order of their characters. Created at the first use of a folder. */
  #sorted: readonly string[] | null = null;

  constructor(paths: Iterable<string>) {
    this.#paths = new Set(paths);
  }

  /**
   * Resolves a path in a manifest: a relative path from the manifest's folder, an absolute path to the file whose path
   * ends with it. A manifest folder may be anywhere, so the absolute path on the author's machine has no meaning.
   */
  resolve(file: string, written: string): string {
    const path = relativeTo(file, written);
    if (!/^([/\\]|[A-Za-z]:[/\\])/.test(written) || this.#paths.has(path)) return path;
    const ends = this.#indexed();
    // a matching file name alone is not sufficient
    const rest = path.replace(/^[A-Za-z]:/, '').replace(/^\/+/, '');
    for (let from = 0; rest.includes('/', from); from = rest.indexOf('/', from) + 1) {
      const found = ends.get(rest.slice(from)) ?? null;
      if (found !== null) return found;
    }
    return path;
  }

  /** Paths below a folder, relative to it, in order; at most `most`. */
  below(folder: string, most: number): string[] {
    const prefix = folder === '' ? '' : `${folder}/`;
    this.#sorted ??= [...this.#paths].toSorted();
    const sorted = this.#sorted;
    let from = 0;
    for (let to = sorted.length; from < to;) {
      const middle = Math.floor((from + to) / 2);
      if ((sorted[middle] ?? '') < prefix) from = middle + 1;
      else to = middle;
    }
    const found: string[] = [];
    for (let at = from; at < sorted.length && found.length < most; at += 1) {
      const path = sorted[at] ?? '';
      if (!path.startsWith(prefix)) break;
      found.push(path.slice(prefix.length));
    }
    return found;
  }

  #indexed(): ReadonlyMap<string, string | null> {
    if (this.#ends !== null) return this.#ends;
    const ends = new Map<string, string | null>();
    for (const path of this.#paths) {
      for (let from = 0; ; from = path.indexOf('/', from) + 1) {
        const end = path.slice(from);
        ends.set(end, ends.has(end) ? null : path);
        if (!path.includes('/', from)) break;
      }
    }
    this.#ends = ends;
    return ends;
  }
}
