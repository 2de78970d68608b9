/**
 * An embedded CPython (WebAssembly), started by the runner under Node's permission model.
 * `python.ts run PYODIDE_DIR HARNESS [SNAPSHOT]` waits for one job and exits with its exit code.
 * `python.ts snapshot PYODIDE_DIR HARNESS` writes the memory of a loaded interpreter to stdout; restoring it takes a
 * quarter of the loading time.
 */
import fs from 'node:fs';
import os from 'node:os';
import { pathToFileURL } from 'node:url';

import type * as Pyodide from 'pyodide';

import { leaveFiles, type VirtualEntry, type VirtualFiles } from './left-files.ts';
import { lockDown } from './lockdown.ts';
import { CHANNEL_FD, type ReceivedJob, receiveJob, sayReady, writeAll } from './wire.ts';

/** Modules in the snapshot: most programs import some of these. */
const PRELOAD =
  'import asyncio, collections, csv, datetime, io, itertools, json, linecache, math, os, random, re, statistics, sys, time, traceback, types';
const HOME = '/work';
const PROGRAM = '/cortex/program.py';
const INPUTS = '/cortex/inputs.json';

const KINDS: ReadonlyMap<number, VirtualEntry['kind']> = new Map([
  [fs.constants.S_IFREG, 'file'],
  [fs.constants.S_IFDIR, 'folder'],
  [fs.constants.S_IFLNK, 'symlink'],
  [fs.constants.S_IFIFO, 'fifo'],
]);

/** Pyodide's snapshot options. They are not part of its stable API, so the runner also works without them. */
interface SnapshotOptions {
  readonly _makeSnapshot?: boolean;
  readonly _loadSnapshot?: Uint8Array;
}
interface SnapshotMaker {
  makeMemorySnapshot(): Uint8Array;
}

const [mode, directory = '', harnessPath = '', snapshotPath] = process.argv.slice(2);

// Emscripten reads these constants through `process.binding`, which the permission model blocks
Reflect.set(process, 'binding', (name: string) => {
  if (name === 'constants') return { fs: fs.constants, os: os.constants };
  throw new Error('Not available in this sandbox');
});

async function load(options: SnapshotOptions): Promise<Pyodide.PyodideAPI> {
  const url = pathToFileURL(`${directory}/pyodide.mjs`).href;
  const { loadPyodide } = (await import(url)) as typeof Pyodide;
  const config: Pyodide.PyodideConfig & SnapshotOptions = {
    indexURL: `${directory}/`,
    // Python's `js` module shows this object instead of the global object
    jsglobals: Object.create(null) as object,
    env: { HOME, LANG: 'C.UTF-8' },
    ...options,
  };
  return await loadPyodide(config);
}

async function makeSnapshot(): Promise<void> {
  const python = await load({ _makeSnapshot: true });
  python.runPython(PRELOAD);
  python.runPython(fs.readFileSync(harnessPath, 'utf8').replace(/^if __name__ [^]*/m, ''));
  writeAll(1, (python as Pyodide.PyodideAPI & SnapshotMaker).makeMemorySnapshot());
}

async function serve(): Promise<never> {
  const snapshot = snapshotPath === undefined ? null : fs.readFileSync(snapshotPath);
  const python = await load(snapshot === null ? {} : { _loadSnapshot: snapshot });
  if (snapshot === null) {
    python.runPython(PRELOAD);
    python.runPython(fs.readFileSync(harnessPath, 'utf8').replace(/^if __name__ [^]*/m, ''));
  }
  // A restored interpreter would repeat the random numbers of its snapshot. Seeding needs a module that `lockDown`
  // removes. As at the other levels, modules are not looked up in the current directory.
  python.FS.mkdirTree('/cortex');
  python.FS.mkdirTree(HOME);
  python.runPython(
    `random.seed(); sys.path[:] = filter(None, sys.path); os.chdir('${HOME}'); os.environ.clear(); os.environ.update(HOME='${HOME}', LANG='C.UTF-8', CORTEX_INPUTS='${INPUTS}')`,
  );
  const exit: (code: number) => never = process.exit.bind(process);
  lockDown();
  sayReady();
  const job = await receiveJob();
  if (job === null) exit(0);

  const stdin = new TextEncoder().encode(job.stdin);
  let read = 0;
  python.setStdin({
    read: (into: Uint8Array) => {
      const chunk = stdin.subarray(read, read + into.length);
      into.set(chunk);
      read += chunk.length;
      return chunk.length;
    },
    isatty: false,
  });
  python.setStdout({ write: (bytes) => (writeAll(1, bytes), bytes.length), isatty: false });
  python.setStderr({ write: (bytes) => (writeAll(2, bytes), bytes.length), isatty: false });
  python.FS.writeFile(PROGRAM, job.source);
  python.FS.writeFile(INPUTS, job.inputsJson);
  const setVariables = python.runPython('os.environ.update') as (variables: unknown) => void;
  setVariables(python.toPy(job.env));
  giveFiles(python, job);
  // an interpreter that has exited does not give access to it any more
  const files = virtualFiles(python.FS);
  const run = python.globals.get('run') as {
    callPromising(...args: readonly unknown[]): Promise<number>;
  };
  let code: number;
  try {
    code = await run.callPromising(job.entry, PROGRAM, INPUTS, python.toPy(job.args));
    python.runPython('import atexit; atexit._run_exitfuncs(); sys.stdout.flush(); sys.stderr.flush()');
  } catch (fault) {
    // `os._exit`; the interpreter runs no more
    const status: unknown = typeof fault === 'object' && fault !== null && Reflect.get(fault, 'status');
    if (typeof status !== 'number') throw fault;
    code = status & 0xff;
  }
  if (job.workspace !== null) await leaveFiles(files, job.workspace.folder, CHANNEL_FD);
  return exit(code);
}

/** Writes the files of the workspace, and chooses where the program starts. */
function giveFiles(python: Pyodide.PyodideAPI, { workspace, files, entry }: ReceivedJob): void {
  if (workspace === null) return;
  const { folder } = workspace;
  python.FS.mkdirTree(folder);
  for (const { path, content, mode, modifiedAt } of files) {
    python.FS.mkdirTree(path.slice(0, path.lastIndexOf('/')));
    python.FS.writeFile(path, content);
    python.FS.chmod(path, mode);
    python.FS.utime(path, modifiedAt.getTime(), modifiedAt.getTime());
  }
  // the bytecode of imported modules would be kept as files
  python.runPython(`os.environ.update(CORTEX_WORKSPACE='${folder}'); sys.dont_write_bytecode = True`);
  if (entry === 'code') python.runPython(`os.chdir('${folder}')`);
}

function virtualFiles(files: Pyodide.PyodideAPI['FS']): VirtualFiles {
  return {
    list: (folder) => (files.readdir(folder) as string[]).filter((name) => name !== '.' && name !== '..'),
    look(path) {
      try {
        const { mode } = files.lstat(path) as { readonly mode: number };
        const kind = KINDS.get(mode & fs.constants.S_IFMT) ?? 'unknown';
        if (kind === 'folder' || kind === 'file') files.chmod(path, mode | 0o600 | (kind === 'folder' ? 0o100 : 0));
        return { kind, mode: mode & 0o777 };
      } catch {
        return null;
      }
    },
    read: (path) => files.readFile(path) as Uint8Array,
  };
}

if (mode === 'snapshot') await makeSnapshot();
else await serve();
