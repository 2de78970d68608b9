/**
 * The embedded sandbox (R2): CPython in WebAssembly for python, and an interpreted shell with virtual files. It needs no
 * installation and works on every operating system.
 *
 * Every job has a separate process: an empty environment, Node's permission model (no files except the interpreter's, no
 * child processes, no workers, no addons), no code from strings, memory limits of V8 and WebAssembly, and no network
 * (`guest/lockdown.ts`, and a network namespace if available). Interpreters are preloaded and used once.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import fs from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { limits } from '../limits.ts';
import type { StateFolder } from '../state.ts';
import { CHANNEL_FD, type GuestJob } from '../guest/wire.ts';
import type { GivenFile } from '../workspace/workspace.ts';
import { LOST, singleProcess, withPipes } from './child.ts';
import { contents, guestFiles, pour, WORKSPACE } from './given-files.ts';
import { findLauncher, type Launcher, NO_LAUNCHER } from './launcher.ts';
import { collect } from './left-archive.ts';
import { packageTree } from './packages.ts';
import type { Availability, Held, Interpreter, Launch, Sandbox, SandboxProcess } from './sandbox.ts';
import { unavailable } from './sandbox.ts';
import { snapshotOf } from './snapshot.ts';
import { deathOf, stateOf, WarmPool, type Warmable, type WarmState } from './warm-pool.ts';

/** WebAssembly memory has pages of 64 KiB. */
const PAGES_PER_MEBIBYTE = 16;
/** How V8 ends a process that is out of memory: with a signal, or the shell's exit code for it. */
const OUT_OF_MEMORY = { signals: ['SIGABRT', 'SIGTRAP', 'SIGILL'], codes: [134, 133] };

const GUEST = fileURLToPath(new URL('../guest/', import.meta.url));
/** A program of the guest: TypeScript in a clone, JavaScript in the package. */
const guestProgram = (name: string): string => path.join(GUEST, `${name}${path.extname(import.meta.filename)}`);
const PYODIDE = path.dirname(fileURLToPath(import.meta.resolve('pyodide')));
const SHELL_BUNDLE = import.meta.resolve('just-bash');
const SHELL_PACKAGES = packageTree(packageOf(fileURLToPath(SHELL_BUNDLE)));

export interface WasmOptions {
  /** State folder of the snapshot. */
  readonly state: StateFolder;
  /** Number of warm interpreters of each kind. */
  readonly warm: number;
  readonly warn: (message: string) => void;
}

/** A preloaded interpreter that waits for its job. */
interface Guest extends Warmable {
  readonly child: ChildProcess;
}

export class WasmSandbox implements Sandbox {
  readonly level = 'wasm';
  readonly #options: WasmOptions;
  readonly #pools: { readonly python3: WarmPool<Guest>; readonly shell: WarmPool<Guest> };
  #launcher: Launcher = NO_LAUNCHER;
  #snapshot: Promise<string | null> | null = null;

  constructor(options: WasmOptions) {
    this.#options = options;
    this.#pools = {
      python3: new WarmPool(options.warm, () => this.#load('python3', limits.memoryMb)),
      shell: new WarmPool(options.warm, () => this.#load('shell', limits.memoryMb)),
    };
  }

  get warm(): WarmState {
    return stateOf(this.#pools);
  }

  async probe(): Promise<Readonly<Record<Interpreter, Availability>>> {
    const files = [path.join(PYODIDE, 'pyodide.asm.wasm'), fileURLToPath(SHELL_BUNDLE)];
    const [python, shell] = await Promise.all(
      files.map((file) =>
        fs.access(file).then(
          (): Availability => ({ ok: true }),
          () => unavailable(`${file} is missing`),
        ),
      ),
    );
    this.#launcher = await findLauncher([...files, GUEST, await traceIn(this.#options.state)]);
    const missing = unavailable('not probed');
    return {
      python3: python ?? missing,
      shell: shell ?? missing,
      node: unavailable('the embedded sandbox runs python3 and shell only; node needs bubblewrap'),
    };
  }

  prepare(interpreter: Interpreter): void {
    if (interpreter !== 'node') this.#pools[interpreter].fill();
  }

  async start(launch: Launch): Promise<SandboxProcess> {
    if (launch.interpreter === 'node') throw new Error('The embedded sandbox does not run node');
    const standard = launch.memoryMb === limits.memoryMb;
    const pool = this.#pools[launch.interpreter];
    return run(standard ? await pool.take() : await this.#load(launch.interpreter, launch.memoryMb), launch);
  }

  async hold(interpreter: Interpreter): Promise<Held> {
    if (interpreter === 'node') throw new Error('The embedded sandbox does not run node');
    const pool = this.#pools[interpreter];
    const guest = await pool.reserve();
    const hasDied = deathOf(guest);
    return {
      start: async (launch) => {
        if (hasDied()) return await this.start(launch);
        if (launch.memoryMb === limits.memoryMb) return run(guest, launch);
        pool.giveBack(guest);
        return await this.start(launch);
      },
      release: () => pool.giveBack(guest),
    };
  }

  get hardening(): readonly string[] {
    return this.#launcher.uses;
  }

  async close(): Promise<void> {
    await Promise.all([this.#pools.python3.close(), this.#pools.shell.close()]);
  }

  async #load(interpreter: 'python3' | 'shell', memoryMb: number): Promise<Guest> {
    if (interpreter === 'shell') {
      const script = [
        guestProgram('shell'),
        SHELL_BUNDLE,
        ...SHELL_PACKAGES.map((place) => `${pathToFileURL(place)}/`),
      ];
      return await this.#spawn(memoryMb, SHELL_PACKAGES, script);
    }
    const harness = path.join(GUEST, 'harness.py');
    this.#snapshot ??= snapshotOf({
      state: this.#options.state,
      harness,
      pyodide: PYODIDE,
      build: () => this.#command(limits.memoryMb, [PYODIDE], [guestProgram('python'), 'snapshot', PYODIDE, harness]),
      warn: this.#options.warn,
    });
    const snapshot = await this.#snapshot;
    return await this.#spawn(
      memoryMb,
      [PYODIDE, ...(snapshot === null ? [] : [snapshot])],
      [guestProgram('python'), 'run', PYODIDE, harness, ...(snapshot === null ? [] : [snapshot])],
    );
  }

  #command(memoryMb: number, readable: readonly string[], script: readonly string[]): string[] {
    return [
      ...this.#launcher.prefix(memoryMb),
      process.execPath,
      '--permission',
      ...[GUEST, ...readable].map((place) => `--allow-fs-read=${place}`),
      '--disallow-code-generation-from-strings',
      `--max-old-space-size=${memoryMb}`,
      `--wasm-max-mem-pages=${memoryMb * PAGES_PER_MEBIBYTE}`,
      '--no-warnings',
      ...script,
    ];
  }

  #spawn(memoryMb: number, readable: readonly string[], script: readonly string[]): Promise<Guest> {
    const [command = '', ...args] = this.#command(memoryMb, readable, script);
    const child = spawn(command, args, {
      cwd: path.parse(process.execPath).root,
      env: emptyEnvironment(),
      stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
      windowsHide: true,
    });
    return ready(child);
  }
}

/** Starts the job of a preloaded interpreter. */
function run({ child }: Guest, launch: Launch): SandboxProcess {
  const { workspace } = launch;
  const job: GuestJob = {
    entry: launch.entry,
    source: launch.source,
    inputsJson: launch.inputsJson,
    args: launch.args,
    stdin: launch.stdin,
    env: launch.env,
    timeoutMs: launch.timeoutMs,
    memoryMb: launch.memoryMb,
    workspace: workspace === undefined ? null : { folder: WORKSPACE, files: guestFiles(workspace.files) },
  };
  const process = singleProcess(
    withPipes(child),
    (code, signal) =>
      OUT_OF_MEMORY.codes.includes(code ?? -1) || (signal !== null && OUT_OF_MEMORY.signals.includes(signal)),
  );
  const channel = child.stdio[CHANNEL_FD] as Readable;
  const collection = workspace === undefined ? null : collect(channel, workspace.receiver, process.kill);
  let unreadable = false;
  pour(jobBytes(job, workspace?.files ?? []), child.stdin, () => {
    unreadable = true;
    process.kill();
  });
  return {
    ...process,
    ended: process.ended.then(async (end) => {
      await collection?.finish();
      return unreadable ? LOST : end;
    }),
    terminate() {
      collection?.abandon();
      process.terminate();
    },
    kill() {
      collection?.abandon();
      process.kill();
    },
  };
}

async function* jobBytes(job: GuestJob, files: readonly GivenFile[]): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(JSON.stringify(job));
  yield Buffer.concat([Buffer.from(`${bytes.length}\n`), bytes]);
  yield* contents(files);
}

/** A file at the snapshot's location, to test read permissions. */
async function traceIn(state: StateFolder): Promise<string> {
  const name = 'readable';
  state.requireFile(name);
  await fs.mkdir(state.directory, { recursive: true });
  await fs.writeFile(state.file(name), '', { mode: 0o644 });
  return state.file(name);
}

/** The package directory of a file. */
function packageOf(file: string): string {
  let at = path.dirname(file);
  while (!existsSync(path.join(at, 'package.json'))) at = path.dirname(at);
  return at;
}

/** Windows programs need SystemRoot; other systems need nothing. */
function emptyEnvironment(): Record<string, string> {
  const root = process.env['SystemRoot'];
  return process.platform === 'win32' && root !== undefined ? { SystemRoot: root } : {};
}

/** Waits for the guest's "ready" byte; its output up to then explains a failure. */
function ready(child: ChildProcess): Promise<Guest> {
  return new Promise((resolve, reject) => {
    let printed = '';
    const signal = child.stdio[CHANNEL_FD] as NodeJS.ReadableStream | null;
    const timer = setTimeout(() => fail(`not ready after ${limits.warmUpMs} ms`), limits.warmUpMs);
    function listen(chunk: unknown): void {
      printed = `${printed}${String(chunk)}`.slice(0, 2_000);
    }
    function fail(reason: string): void {
      clearTimeout(timer);
      child.kill('SIGKILL');
      reject(
        new Error(`The embedded interpreter did not start: ${reason}${printed === '' ? '' : `: ${printed.trim()}`}`),
      );
    }
    function onExit(code: number | null, by: string | null): void {
      fail(`it ended with ${by ?? `exit code ${code ?? 'unknown'}`}`);
    }
    child.once('error', (fault) => fail(fault.message));
    child.once('exit', onExit);
    child.stdin?.on('error', () => undefined);
    child.stderr?.on('data', listen);
    signal?.on('error', () => undefined);
    signal?.once('data', () => {
      clearTimeout(timer);
      // later, an archive follows
      signal.pause();
      child.off('exit', onExit);
      child.stderr?.off('data', listen);
      child.stderr?.pause();
      resolve({
        child,
        onDeath: (listener) => {
          if (child.exitCode !== null || child.signalCode !== null) queueMicrotask(listener);
          else child.once('exit', listener);
        },
        dispose: () => void child.kill('SIGKILL'),
      });
    });
  });
}
