/**
 * The runner's state folder (R1). A file in it that cannot be used is set aside: it keeps its content under another
 * name, the runner goes on with a new one, and `/health` and the log name it until the operator removes it.
 */
import fs from 'node:fs';
import path from 'node:path';

import { limits } from './limits.ts';

const MARK = '.set-aside-';
/** What SQLite keeps beside a database. */
const COMPANIONS = ['-wal', '-shm', '-journal'] as const;

export interface StateOptions {
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Told of every file that is set aside, by its new name. */
  readonly onSetAside: (name: string, reason: string) => void;
}

export class StateFolder {
  readonly directory: string;
  readonly #options: StateOptions;

  /** @param stateDir the folder of the whole system; the runner's own is `runner/` below it */
  constructor(stateDir: string, options: StateOptions) {
    this.directory = path.resolve(stateDir, 'runner');
    this.#options = options;
  }

  /** @throws Error of the file system that says why it cannot be made */
  create(): void {
    if (fs.existsSync(this.directory) && fs.statSync(this.directory).isDirectory()) return;
    try {
      fs.mkdirSync(this.directory, { recursive: true });
    } catch {
      // a recursive one says ENOENT on a disk that is read-only
      fs.mkdirSync(this.directory);
    }
  }

  file(name: string): string {
    return path.join(this.directory, name);
  }

  /**
   * Renames a file, with what SQLite keeps beside it, so that its name is free.
   *
   * @returns the name that it has now
   * @throws Error of the file system when it cannot be renamed
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

  /** Frees a name that is taken by something else than a file, such as a directory or a pipe. */
  requireFile(name: string): void {
    const taken = [name, ...COMPANIONS.map((suffix) => name + suffix)].find((each) => !mayBeFile(this.file(each)));
    if (taken !== undefined) this.setAside(name, `${taken} is not a file`);
  }

  /** Names of what was set aside and is still there, the newest first, at most `limits.setAsideNames`. */
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

/** A file, a link to one, or nothing yet. */
function mayBeFile(file: string): boolean {
  try {
    return fs.statSync(file, { throwIfNoEntry: false })?.isFile() ?? true;
  } catch (fault) {
    // a loop of links leads nowhere; what this user may not look at is not judged here
    return !(fault instanceof Error && 'code' in fault && fault.code === 'ELOOP');
  }
}
