/**
 * The operating system's interpreters in Linux namespaces, through bubblewrap (R2).
 *
 * A program sees /usr read-only, its own /proc, /dev and hostname, empty /work and /tmp in memory, its data in /cortex,
 * and its workspace, if it has one, in /workspace. It has no network, no capabilities and no access to other processes. It runs as an unprivileged user if the
 * runner is root, with a system call filter and limits on memory, processes, files and time. All its processes are in
 * one pid namespace and end with it.
 */
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import type { Duplex } from 'node:stream';

import { limits } from '../limits.ts';
import { ownerMark } from './abandoned.ts';
import { CHANNEL, INPUTS, limiter, NODE, PYTHON, startOf, TAR } from './bubblewrap-guest.ts';
import { type Cgroups, type JobCgroup, openCgroups } from './cgroups.ts';
import { endOf, feed, LOST, spawned, withPipes } from './child.ts';
import { archiveOf, pour, WORKSPACE } from './given-files.ts';
import { collect, type Collection } from './left-archive.ts';
import { probeBy } from './probe.ts';
import { descendantsOf, signalAll } from './process-tree.ts';
import type { Availability, Held, Interpreter, Launch, ResourceLimits, Sandbox, SandboxProcess } from './sandbox.ts';
import { everywhere, isStandard, STANDARD, unavailable } from './sandbox.ts';
import { seccompFilter } from './seccomp.ts';
import { LOADED_PYTHON, loadedJob } from './loaded-python.ts';
import { HARNESS, isHeapExhausted, PROGRAM_FILE } from './system-programs.ts';
import { deathOf, stateOf, WarmPool, type Warmable, type WarmState } from './warm-pool.ts';

/** Descriptors that bubblewrap reads or writes. It closes each after use, so the program inherits none. */
const FD = { arguments: 4, passwd: 5, info: 6, seccomp: 7, harness: 8, program: 9, inputs: 10, start: 11 } as const;
/** The descriptors from here on pass files to a program that is not preloaded. */
const FIRST_FILE = FD.harness;
const END_OF_FILES = FD.start + 1;
/** Each job of a privileged runner has its own user id, because process limits count per user. */
const FIRST_UID = 62_000;
/** The user id inside the namespace. */
const INNER_ID = 1_000;
const PASSWD = `sandbox:x:${INNER_ID}:${INNER_ID}::/work:/bin/sh\n`;
/** Parts of /etc that programs in /usr need; they contain no secrets. */
const ETC = ['/etc/alternatives', '/etc/ld.so.cache', '/etc/ld.so.conf', '/etc/ld.so.conf.d', '/etc/localtime'];
const TOP = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'];
/** The code and the inputs of a job, twice if they are also on standard input. */
const DATA_BYTES = 4 * limits.bodyBytes;

/** A sandbox that waits for its program. */
interface Waiting extends Warmable {
  run(launch: Launch): SandboxProcess;
}

export class BubblewrapSandbox implements Sandbox {
  readonly level = 'bubblewrap';
  readonly #pools: Readonly<Record<Interpreter, WarmPool<Waiting>>>;
  /** Memory and process limits for the whole tree, if cgroups are writable. */
  #cgroups: Cgroups | null = null;
  readonly #harness = fs.readFileSync(HARNESS, 'utf8');
  readonly #seccomp = seccompFilter(process.arch);
  readonly #privileged = process.getuid?.() === 0;
  readonly #slots = new Set<number>();

  /** @param warm number of warm sandboxes of each kind */
  constructor(warm: number) {
    const pool = (interpreter: Interpreter, loaded: boolean): WarmPool<Waiting> =>
      new WarmPool(
        warm,
        () => this.#open(interpreter, STANDARD, loaded),
        // loading takes longer than most programs run
        () => this.#open(interpreter, STANDARD, false),
      );
    this.#pools = { python3: pool('python3', true), shell: pool('shell', false), node: pool('node', false) };
  }

  get hardening(): readonly string[] {
    return [
      ...(this.#seccomp === null ? [] : ['system call filter']),
      ...(this.#privileged ? ['own user per job'] : []),
      ...(this.#cgroups === null ? [] : ['control groups']),
    ];
  }

  get warm(): WarmState {
    return stateOf(this.#pools);
  }

  async probe(): Promise<Readonly<Record<Interpreter, Availability>>> {
    if (process.platform !== 'linux') return everywhere(unavailable('bubblewrap runs on Linux only'));
    const { error } = spawnSync('bwrap', ['--version'], { env: {}, stdio: 'ignore' });
    if (error !== undefined) return everywhere(unavailable('bubblewrap is not installed'));
    if (TAR === null) return everywhere(unavailable('tar is not installed'));
    const start = async (launch: Launch): Promise<SandboxProcess> =>
      (await this.#open(launch.interpreter, launch, false)).run(launch);
    const shell = await probeBy(start, 'shell');
    // without namespaces, nothing else works either
    if (!shell.ok) return everywhere(shell);
    this.#cgroups = openCgroups();
    if (this.#cgroups !== null && !(await probeBy(start, 'shell')).ok) {
      await this.#cgroups.close();
      this.#cgroups = null;
    }
    const [python3, node] = await Promise.all([probeBy(start, 'python3'), probeBy(start, 'node')]);
    return { python3, shell, node };
  }

  prepare(interpreter: Interpreter): void {
    this.#pools[interpreter].fill();
  }

  async start(launch: Launch): Promise<SandboxProcess> {
    const waiting = isStandard(launch)
      ? await this.#pools[launch.interpreter].take()
      : await this.#open(launch.interpreter, launch, false);
    return waiting.run(launch);
  }

  async hold(interpreter: Interpreter): Promise<Held> {
    const pool = this.#pools[interpreter];
    const waiting = await pool.reserve();
    const hasDied = deathOf(waiting);
    return {
      start: async (launch) => {
        if (hasDied()) return await this.start(launch);
        if (isStandard(launch)) return waiting.run(launch);
        pool.giveBack(waiting);
        return await this.start(launch);
      },
      release: () => pool.giveBack(waiting),
    };
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.#pools).map((pool) => pool.close()));
    await this.#cgroups?.close();
  }

  /**
   * Prepares a sandbox that waits for its program.
   *
   * @param loaded whether the interpreter is preloaded and reads its job; otherwise bubblewrap waits for the files
   */
  async #open(interpreter: Interpreter, resources: ResourceLimits, loaded: boolean): Promise<Waiting> {
    const slot = this.#takeSlot();
    const release = (): boolean => this.#slots.delete(slot);
    let cgroup: JobCgroup | null;
    try {
      cgroup = this.#cgroups?.create(slot, resources) ?? null;
    } catch (fault) {
      release();
      throw fault;
    }
    const [command = '', ...args] = [
      ...(cgroup?.prefix ?? []),
      ...(this.#privileged ? dropTo(FIRST_UID + slot) : []),
      'bwrap',
      '--args',
      String(FD.arguments),
      '--',
      ...limiter(interpreter, resources),
      ...(loaded ? [PYTHON, ...LOADED_PYTHON] : ['/bin/sh', '/cortex/start']),
    ];
    const child = spawn(command, args, {
      cwd: '/',
      // the sandbox gets an empty environment (--clearenv)
      env: ownerMark(),
      // an ignored descriptor would be inherited
      stdio: Array.from({ length: loaded ? FIRST_FILE : END_OF_FILES }, (_, fd) =>
        fd === FD.seccomp && this.#seccomp === null ? 'ignore' : 'pipe',
      ),
    });
    child.once('error', release);
    const pipes = withPipes(child);
    const pipe = (fd: number): unknown => (child.stdio as readonly unknown[])[fd];
    const first = initOf(pipe(FD.info));
    feed(pipe(FD.arguments), `${this.#arguments(interpreter, resources, loaded).join('\0')}\0`);
    feed(pipe(FD.harness), this.#harness);
    feed(pipe(FD.passwd), PASSWD);
    feed(pipe(FD.seccomp), this.#seccomp ?? '');
    let collection: Collection | null = null;
    let unreadable = false;
    const ended = endOf(pipes, (code) => isHeapExhausted(interpreter, code) || (cgroup?.ranOut() ?? false)).then(
      async (end) => {
        await collection?.finish();
        release();
        return unreadable ? LOST : end;
      },
    );
    await spawned(child);
    function kill(): void {
      collection?.abandon();
      const init = first();
      if (init !== null) signalAll([init], 'SIGKILL');
      child.kill('SIGKILL');
    }
    return {
      run(launch) {
        const { workspace } = launch;
        const channel = pipe(CHANNEL) as Duplex;
        if (workspace !== undefined) collection = collect(channel, workspace.receiver, kill);
        const onUnreadable = (): void => {
          unreadable = true;
          kill();
        };
        if (loaded) {
          pour(loadedJob(launch, { marker: '', channel: CHANNEL }), child.stdin, onUnreadable);
        } else {
          if (workspace !== undefined) pour(archiveOf({}, workspace.files), channel, onUnreadable);
          feed(pipe(FD.program), launch.source);
          feed(pipe(FD.inputs), launch.inputsJson);
          feed(pipe(FD.start), startOf(launch));
          feed(child.stdin, launch.stdin);
        }
        return {
          stdout: pipes.stdout,
          stderr: pipes.stderr,
          ended,
          terminate: () => {
            collection?.abandon();
            const init = first();
            // the first process of the namespace is bubblewrap's
            if (init === null) child.kill('SIGKILL');
            else signalAll(descendantsOf(init), 'SIGTERM');
          },
          kill,
        };
      },
      onDeath: (listener) => void ended.then(listener),
      dispose: async () => {
        kill();
        await ended;
      },
    };
  }

  #takeSlot(): number {
    let slot = 0;
    while (this.#slots.has(slot)) slot += 1;
    this.#slots.add(slot);
    return slot;
  }

  #arguments(interpreter: Interpreter, resources: ResourceLimits, loaded: boolean): string[] {
    const place = (bytes: number, mode = '0700'): string => `--size ${bytes} --perms ${mode} --tmpfs`;
    const scratch = place(resources.diskMb * 1_048_576);
    const file = `--perms 0444 --file`;
    return [
      ...words(`--unshare-user --unshare-all --die-with-parent --new-session --cap-drop ALL --clearenv`),
      ...words(`--uid ${INNER_ID} --gid ${INNER_ID} --hostname sandbox --info-fd ${FD.info}`),
      // the filter blocks new namespaces; without a filter, bubblewrap does
      ...words(this.#seccomp === null ? '--disable-userns' : `--seccomp ${FD.seccomp}`),
      ...words('--ro-bind /usr /usr'),
      ...TOP.flatMap(topLevel),
      ...ETC.flatMap((part) => ['--ro-bind-try', part, part]),
      ...words(`--proc /proc --dev /dev ${scratch} /dev/shm --remount-ro /dev ${scratch} /tmp ${scratch} /work`),
      // a program that has a workspace makes it writable
      ...words(`${place(limits.workspaceRoomMb * 1_048_576, '0555')} ${WORKSPACE}`),
      ...words(`${file} ${FD.passwd} /etc/passwd`),
      ...(interpreter === 'node' ? ['--ro-bind', process.execPath, NODE] : []),
      ...(loaded
        ? words(`${place(DATA_BYTES)} /cortex`)
        : // bubblewrap reads these in order; a warm sandbox waits for the first one
          [
            ...words(`${file} ${FD.harness} /cortex/harness.py`),
            ...words(`${file} ${FD.program} /cortex/${PROGRAM_FILE[interpreter]}`),
            ...words(`${file} ${FD.inputs} ${INPUTS} ${file} ${FD.start} /cortex/start`),
          ]),
      ...words('--remount-ro / --chdir /work'),
    ];
  }
}

function words(text: string): string[] {
  return text.split(' ');
}

/** On merged-usr systems, /bin and others are links into /usr; elsewhere they are bind-mounted. */
function topLevel(place: string): string[] {
  const known = fs.lstatSync(place, { throwIfNoEntry: false });
  if (known === undefined) return [];
  return known.isSymbolicLink() ? ['--symlink', fs.readlinkSync(place), place] : ['--ro-bind', place, place];
}

function dropTo(uid: number): string[] {
  return words(
    `setpriv --reuid=${uid} --regid=${uid} --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs --pdeathsig KILL`,
  );
}

/** Returns the pid of the namespace's first process once bubblewrap has reported it. */
function initOf(pipe: unknown): () => number | null {
  const readable = pipe as NodeJS.ReadableStream | null;
  let info = '';
  readable?.on('error', () => undefined);
  readable?.on('data', (chunk: Buffer) => {
    info += chunk.toString();
  });
  return () => {
    const pid = /"child-pid":\s*(\d+)/.exec(info)?.[1];
    return pid === undefined ? null : Number(pid);
  };
}
