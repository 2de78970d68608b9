/**
 * What a set of changes does to the paths of a workspace (C7). Pure: the table is changed by session-workspace.ts.
 *
 * Invariant: no path is a file and a folder. A file that is written replaces the folder at its path, and a file that is a
 * folder of its path.
 */
import type { WorkspaceChange, WorkspaceFile } from '../../domain/workspace.ts';

export interface WorkspacePlan {
  readonly written: readonly WorkspaceFile[];
  /** Paths that have no file any more. */
  readonly deleted: readonly string[];
  /** Hashes that had a path before, and have none now. */
  readonly released: ReadonlySet<string>;
  /**
   * Paths at which the file is neither the one of the snapshot nor the new one, and those of files in the way of new ones:
   * another writer has changed them.
   */
  readonly conflicts: readonly string[];
  /** Of the whole workspace afterwards. */
  readonly files: number;
  readonly bytes: number;
}

/** @param now modification time of written files, epoch milliseconds */
export function planChanges(
  files: readonly WorkspaceFile[],
  changes: readonly WorkspaceChange[],
  now: number,
): WorkspacePlan {
  const tree = new PathTree(files);
  const conflicts = new Set(
    changes.filter((change) => isConflict(tree.get(change.path), change)).map(({ path }) => path),
  );
  const written: WorkspaceFile[] = [];
  // Deletions first: what replaces a folder may be among the changes.
  for (const change of changes) if ('deleted' in change) tree.delete(change.path);
  for (const change of changes) {
    if (!('sha256' in change)) continue;
    // What the program found there, it has deleted.
    for (const path of tree.inTheWayOf(change.path)) {
      conflicts.add(path);
      tree.delete(path);
    }
    const { path, sha256, size, executable } = change;
    const known = tree.get(path);
    if (known?.sha256 === sha256 && known.executable === executable) continue;
    const file = { path, sha256, size, executable, modifiedAt: now };
    tree.set(file);
    written.push(file);
  }
  const hashes = tree.hashes();
  return {
    written: written.filter((file) => tree.get(file.path) === file),
    deleted: files.filter(({ path }) => tree.get(path) === null).map(({ path }) => path),
    released: new Set(files.map(({ sha256 }) => sha256).filter((sha256) => !hashes.has(sha256))),
    conflicts: [...conflicts],
    files: tree.size,
    bytes: tree.bytes,
  };
}

function isConflict(known: WorkspaceFile | null, change: WorkspaceChange): boolean {
  const now = known?.sha256 ?? null;
  const then = 'sha256' in change ? change.sha256 : null;
  return now !== change.base && now !== then;
}

/** The files of a workspace by path, with the folders that they are in. */
class PathTree {
  readonly #files: Map<string, WorkspaceFile>;
  /** Number of files in each folder and below. */
  readonly #folders = new Map<string, number>();
  #bytes = 0;

  constructor(files: readonly WorkspaceFile[]) {
    this.#files = new Map(files.map((file) => [file.path, file]));
    for (const file of files) this.#count(file, 1);
  }

  get size(): number {
    return this.#files.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get(path: string): WorkspaceFile | null {
    return this.#files.get(path) ?? null;
  }

  set(file: WorkspaceFile): void {
    this.delete(file.path);
    this.#files.set(file.path, file);
    this.#count(file, 1);
  }

  delete(path: string): void {
    const file = this.#files.get(path);
    if (file === undefined) return;
    this.#files.delete(path);
    this.#count(file, -1);
  }

  /** Files that cannot exist beside a file at this path: those below it, and one that is a folder of it. */
  inTheWayOf(path: string): readonly string[] {
    const above = foldersOf(path).filter((folder) => this.#files.has(folder));
    const isFolder = (this.#folders.get(path) ?? 0) > 0;
    const below = isFolder ? [...this.#files.keys()].filter((other) => other.startsWith(`${path}/`)) : [];
    return [...above, ...below];
  }

  hashes(): ReadonlySet<string> {
    return new Set([...this.#files.values()].map(({ sha256 }) => sha256));
  }

  #count({ path, size }: WorkspaceFile, sign: 1 | -1): void {
    this.#bytes += sign * size;
    for (const folder of foldersOf(path)) this.#folders.set(folder, (this.#folders.get(folder) ?? 0) + sign);
  }
}

/** `a/b/c` is in `a` and `a/b`. */
function foldersOf(path: string): string[] {
  const segments = path.split('/');
  return segments.slice(1).map((_, index) => segments.slice(0, index + 1).join('/'));
}
