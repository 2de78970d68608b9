/**
 * The runner's state folder (R1). An unusable file is set aside: it is renamed, the runner creates a new one, and
 * `/health` and the log name the renamed file until the operator removes it.
 */
import fs from 'node:fs';
import path from 'node:path';

import { limits } from './limits.ts';
import { privateFolder, privateTree } from './private-folder.ts';

const MARK = '.set-aside-';
/** Additional files of a SQLite database. */
const COMPANIONS = ['-wal', '-shm', '-journal'] as const;

export interface StateOptions {
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Called with the new name of each file that is set aside. */
  readonly onSetAside: (name: string, reason: string) => void;
}

export class StateFolder {
  readonly directory: string;
  readonly #options: StateOptions;

  /** @param stateDir the state folder of the whole system; the runner uses its subfolder `runner/` */
  constructor(stateDir: string, options: StateOptions) {
    this.directory = path.resolve(stateDir, 'runner');
    this.#options = options;
  }

  /** Creates it, or makes an existing one private. @throws Error that names it if that is not possible */
  create(): void {
    privateFolder(path.dirname(this.directory));
    privateTree(this.directory);
  }

  file(name: string): string {
    return path.join(this.directory, name);
  }

  /**
   * Renames a file and SQLite's additional files, so that the name is free.
   *
   * @returns the new name
   * @throws Error of the file system if it cannot be renamed
   */
  setAside(name: string, reason: string): string {
    const at = new Date(this.#options.now()).toISOString().replaceAll(/[:.]/g, '-');
    let kept = `${name}${MARK}${at}`;
    for (let number = 2; exists(this.file(kept)); number += 1) kept = `${name}${MARK}${at}-${number}`;
    for (const suffix of ['', ...COMPANIONS]) {
      if (exists(this.file(name + suffix))) fs.renameSync(this.file(name + suffix), this.file(kept + suffix));
    }
    this.#options.onSetAside(kept, reason);
    return kept;
  }

  /** Sets aside anything with this name that is not a file, such as a directory or a pipe. */
  requireFile(name: string): void {
    const taken = [name, ...COMPANIONS.map((suffix) => name + suffix)].find((each) => !mayBeFile(this.file(each)));
    if (taken !== undefined) this.setAside(name, `${taken} is not a file`);
  }

  /** Sets aside anything with this name that is not a folder, or a link to one. */
  requireFolder(name: string): void {
    if (!exists(this.file(name))) return;
    let isFolder = false;
    try {
      isFolder = fs.statSync(this.file(name)).isDirectory();
    } catch {
      // a link that leads nowhere
    }
    if (!isFolder) this.setAside(name, 'it is not a folder');
  }

  /** Existing files that were set aside, newest first, at most `limits.setAsideNames`. */
  setAsideNames(): string[] {
    try {
      return fs
        .readdirSync(this.directory)
        .filter((name) => name.includes(MARK) && !COMPANIONS.some((suffix) => name.endsWith(suffix)))
        .toSorted((a, b) => (timeOf(a) < timeOf(b) ? 1 : -1))
        .slice(0, limits.setAsideNames);
    } catch {
      return [];
    }
  }
}

function timeOf(name: string): string {
  return name.slice(name.indexOf(MARK));
}

function exists(file: string): boolean {
  return fs.lstatSync(file, { throwIfNoEntry: false }) !== undefined;
}

/** Whether the path is a file, a link to a file, or missing. */
function mayBeFile(file: string): boolean {
  try {
    return fs.statSync(file, { throwIfNoEntry: false })?.isFile() ?? true;
  } catch (fault) {
    // ELOOP is a loop of links; other errors are reported when the file is used
    return !(fault instanceof Error && 'code' in fault && fault.code === 'ELOOP');
  }
}
