/**
 * Watches a folder and everything below it.
 *
 * Owns a watcher for each folder: those of Node that watch recursively lose a file when another one replaces it (Linux).
 * Does not own what a change means.
 *
 * Invariants:
 * 1. A folder that appears is watched, and the files in it are changes. A folder that another one replaces is watched anew.
 * 2. Changes that follow each other within the quiet interval are one call.
 * 3. A file that appears and disappears between two calls is not reported: editors write other files through such files.
 */
import { lstatSync, readdirSync, statSync, watch } from 'node:fs';
import type { FSWatcher, Stats } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { messageOf } from '../../src/domain/errors.ts';

interface WatchedFolder {
  readonly watcher: FSWatcher;
  /** File systems use the number of a deleted folder again, so the time of its birth is part of it. */
  readonly identity: string;
}

export interface FolderWatchOptions {
  /** Debounce interval. */
  readonly quietMs: number;
  /** Whether changes of a path are ignored. Paths of folders end with `/`. */
  readonly isIgnored: (path: string) => boolean;
  /** Called with the paths of changed and deleted files, relative to the folder, with `/`, sorted. */
  readonly changed: (paths: readonly string[]) => void;
  /** Called if a folder cannot be watched. */
  readonly failed: (message: string) => void;
}

export class FolderWatch {
  readonly #root: string;
  readonly #options: FolderWatchOptions;
  /** The path of the root is empty. */
  readonly #folders = new Map<string, WatchedFolder>();
  readonly #parent: FSWatcher;
  #known = new Set<string>();
  readonly #touched = new Set<string>();
  #timer: NodeJS.Timeout | null = null;

  constructor(root: string, options: FolderWatchOptions) {
    this.#root = resolve(root);
    this.#options = options;
    this.#parent = watch(dirname(this.#root), (_event, name) => {
      if (name === null || name === basename(this.#root)) this.#look('');
    });
    this.#parent.on('error', (fault) => options.failed(fault.message));
    this.#look('');
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#known = new Set([...this.#touched].filter((path) => this.#stat(path)?.isFile() === true));
    this.#touched.clear();
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#parent.close();
    this.#forget('');
  }

  /** Records a change at a path. */
  #look(path: string): void {
    const stat = this.#stat(path);
    const isFolder = stat?.isDirectory() === true;
    if (path !== '' && this.#options.isIgnored(isFolder ? `${path}/` : path)) return;
    const watched = this.#folders.get(path);
    if (isFolder && watched?.identity === identityOf(stat)) return;
    if (watched !== undefined) this.#forget(path);
    this.#touch(path);
    if (isFolder) this.#add(path, identityOf(stat));
  }

  #add(path: string, identity: string): void {
    const folder = join(this.#root, path);
    const inside = path === '' ? '' : `${path}/`;
    try {
      const watcher = watch(folder, (_event, name) => {
        // the last event of a deleted folder has its own name
        if (identityOf(this.#stat(path)) !== identity) this.#look(path);
        else if (name !== null) this.#look(`${inside}${name}`);
      });
      watcher.on('error', () => this.#look(path));
      this.#folders.set(path, { watcher, identity });
      for (const name of readdirSync(folder)) this.#look(`${inside}${name}`);
    } catch (fault) {
      // it may be gone already
      if (this.#stat(path) !== null) this.#options.failed(messageOf(fault));
    }
  }

  /** Stops watching a folder and all below it. */
  #forget(path: string): void {
    for (const [one, { watcher }] of this.#folders) {
      if (path !== '' && one !== path && !one.startsWith(`${path}/`)) continue;
      watcher.close();
      this.#folders.delete(one);
    }
  }

  #touch(path: string): void {
    this.#touched.add(path);
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#report(), this.#options.quietMs);
  }

  #report(): void {
    this.#timer = null;
    const paths = new Set<string>();
    for (const path of this.#touched) {
      if (this.#stat(path)?.isFile() === true) paths.add(path);
      // a folder that was moved away or replaced has one event
      for (const file of this.#known) {
        const isInside = path === '' || file === path || file.startsWith(`${path}/`);
        if (isInside && this.#stat(file)?.isFile() !== true) paths.add(file);
      }
    }
    this.#touched.clear();
    if (paths.size === 0) return;
    for (const path of paths) {
      if (this.#stat(path)?.isFile() === true) this.#known.add(path);
      else this.#known.delete(path);
    }
    this.#options.changed([...paths].sort());
  }

  /** The root may be a link; links below it are not followed to folders. */
  #stat(path: string): Stats | null {
    const options = { throwIfNoEntry: false } as const;
    if (path === '') return statSync(this.#root, options) ?? null;
    try {
      const file = join(this.#root, path);
      const own = lstatSync(file, options) ?? null;
      const target = own?.isSymbolicLink() === true ? (statSync(file, options) ?? null) : own;
      return own !== target && target?.isDirectory() === true ? own : target;
    } catch {
      // a part of the path is a file now
      return null;
    }
  }
}

function identityOf(stat: Stats | null): string {
  return stat === null ? '' : `${stat.ino} ${stat.birthtimeMs}`;
}
