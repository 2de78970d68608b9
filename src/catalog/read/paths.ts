/** Paths as manifests write them, and the files of a folder that they mean (M2). */

export function folderOf(file: string): string {
  return file.slice(0, Math.max(0, file.lastIndexOf('/')));
}

/** The path of `path` as seen from the folder of `file`, with `.` and `..` worked out. */
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

/** Finds files by their paths, or by the ends of them. */
export class PathIndex {
  readonly #paths: ReadonlySet<string>;
  /** The file that ends so; null for several. Made when the first absolute path is looked up. */
  #ends: Map<string, string | null> | null = null;

  constructor(paths: Iterable<string>) {
    this.#paths = new Set(paths);
  }

  /**
   * The path that a manifest means: relative to its own folder, or, when absolute, the file whose path
   * ends like it. A folder of manifests may stand anywhere, so where it stood for its author says nothing.
   */
  meant(file: string, written: string): string {
    const path = relativeTo(file, written);
    if (!/^([/\\]|[A-Za-z]:[/\\])/.test(written) || this.#paths.has(path)) return path;
    const ends = this.#indexed();
    // the last step alone is not enough to tell a file
    const rest = path.replace(/^[A-Za-z]:/, '').replace(/^\/+/, '');
    for (let from = 0; rest.includes('/', from); from = rest.indexOf('/', from) + 1) {
      const found = ends.get(rest.slice(from)) ?? null;
      if (found !== null) return found;
    }
    return path;
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
