/** Programs with a workspace at one sandbox level, without jobs: the files that they get, and what they leave (C7). */
import { createHash } from 'node:crypto';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import type { Readable } from 'node:stream';

import { vi } from 'vitest';

import { BubblewrapSandbox } from '../../sandbox/bubblewrap.ts';
import { DockerSandbox } from '../../sandbox/docker.ts';
import { ProcessSandbox } from '../../sandbox/process.ts';
import {
  type Held,
  type ImageLaunch,
  INTERPRETERS,
  type Launch,
  type ProcessEnd,
  type Sandbox,
  type SandboxLevel,
  type SandboxProcess,
} from '../../sandbox/sandbox.ts';
import { WasmSandbox } from '../../sandbox/wasm.ts';
import { StateFolder } from '../../state.ts';
import type { EntryKind, GivenFile, LeftEntry, WorkspaceReceiver } from '../../workspace/workspace.ts';
import { EMPTY_PROGRAM } from './fake-sandbox.ts';
import { dockerSocket } from './levels.ts';
import { withSnapshot } from './python-snapshot.ts';

/** Above this, a receiver keeps the hash only. */
const KEPT_BYTES = 1_024;

export interface Taken {
  readonly kind: EntryKind;
  readonly executable: boolean;
  readonly size: number;
  /** Of a small file; the SHA-256 of a larger one. */
  readonly text: string;
}

/** Keeps what a program left in memory, and refuses what is too much. */
export class MemoryReceiver implements WorkspaceReceiver {
  readonly entries = new Map<string, Taken>();
  readonly #most: { readonly entries: number; readonly bytes: number };
  #bytes = 0;
  completed = 0;
  refused = false;

  constructor(most: Partial<{ readonly entries: number; readonly bytes: number }> = {}) {
    this.#most = { entries: most.entries ?? 5_000, bytes: most.bytes ?? 67_108_864 };
  }

  /** The files by path. */
  get files(): Record<string, string> {
    const files = [...this.entries].filter(([, { kind }]) => kind === 'file');
    return Object.fromEntries(files.map(([name, { text }]) => [name, text]));
  }

  async entry({ path: name, kind, executable, size }: LeftEntry, bytes: Readable | null): Promise<boolean> {
    if (this.entries.size >= this.#most.entries || this.#bytes + size > this.#most.bytes) {
      this.refused = true;
      return false;
    }
    const content = bytes === null ? Buffer.alloc(0) : await buffer(bytes);
    this.#bytes += content.length;
    const text = content.length <= KEPT_BYTES ? content.toString() : sha256(content);
    this.entries.set(name, { kind, executable, size: content.length, text });
    return true;
  }

  complete(): void {
    this.completed += 1;
  }
}

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** A file of a workspace. */
export interface Given {
  readonly content: string | Uint8Array;
  readonly executable?: boolean;
  /** Epoch milliseconds. */
  readonly modifiedAt?: number;
}

export interface Ran extends ProcessEnd {
  readonly stdout: string;
  readonly stderr: string;
  readonly receiver: MemoryReceiver;
}

export type Wish = Partial<Launch> & {
  /** Null: the program has no workspace. */
  readonly given?: Readonly<Record<string, string | Given>> | null;
  readonly receiver?: MemoryReceiver;
  /** Called with each piece of standard output. */
  readonly onOutput?: (text: string, process: SandboxProcess) => void;
};

export class WorkspaceKit {
  readonly sandbox: Sandbox;
  readonly folder: string;

  private constructor(sandbox: Sandbox, folder: string) {
    this.sandbox = sandbox;
    this.folder = folder;
  }

  static async open(level: SandboxLevel, warm = 0): Promise<WorkspaceKit> {
    const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'workspace-kit-'));
    if (level === 'wasm') withSnapshot(folder);
    const sandbox = sandboxOf(level, folder, warm);
    await sandbox.probe();
    for (const interpreter of INTERPRETERS) sandbox.prepare?.(interpreter);
    return new WorkspaceKit(sandbox, folder);
  }

  /** Waits until every warm sandbox is ready, so that the next program gets one. */
  async ready(): Promise<void> {
    await vi.waitUntil(() => this.sandbox.warm?.filling !== true, { timeout: 60_000, interval: 20 });
  }

  /** Writes the files and describes them. */
  async given(files: Readonly<Record<string, string | Given>>): Promise<GivenFile[]> {
    return await Promise.all(
      Object.entries(files).map(async ([name, file]) => {
        const { content, executable = false, modifiedAt = 0 } = typeof file === 'string' ? { content: file } : file;
        const bytes = Buffer.from(content);
        const source = path.join(this.folder, sha256(bytes));
        await fs.writeFile(source, bytes);
        return { path: name, size: bytes.length, executable, modifiedAt, source };
      }),
    );
  }

  async python(source: string, wish: Wish = {}): Promise<Ran> {
    return await this.run({ interpreter: 'python3', source, ...wish });
  }

  async shell(source: string, wish: Wish = {}): Promise<Ran> {
    return await this.run({ interpreter: 'shell', source, ...wish });
  }

  /** Runs a program with a workspace, which is empty unless files are given. */
  async run({ given = {}, receiver = new MemoryReceiver(), onOutput, ...launch }: Wish): Promise<Ran> {
    const workspace = given === null ? {} : { workspace: { files: await this.given(given), receiver } };
    const process = await this.sandbox.start({ ...EMPTY_PROGRAM, ...workspace, ...launch });
    return { ...(await outcomeOf(process, onOutput)), receiver };
  }

  /** The same for a program of an image, in a reserved container if there is one. */
  async image(
    launch: Pick<ImageLaunch, 'command'> & Partial<ImageLaunch>,
    wish: Pick<Wish, 'given'> = {},
    held?: Held<ImageLaunch>,
  ): Promise<Ran> {
    const receiver = new MemoryReceiver();
    const { given = {} } = wish;
    const workspace = given === null ? {} : { workspace: { files: await this.given(given), receiver } };
    const whole = { ...EMPTY_PROGRAM, image: 'busybox', ...workspace, ...launch };
    const process = await (held === undefined ? this.sandbox.startImage?.(whole) : held.start(whole));
    if (process === undefined) throw new Error('This level has no images');
    return { ...(await outcomeOf(process)), receiver };
  }

  async close(): Promise<void> {
    await this.sandbox.close();
    await fs.rm(this.folder, { recursive: true, force: true });
  }
}

/** Reads all output of a program. */
async function outcomeOf(
  process: SandboxProcess,
  onOutput?: (text: string, process: SandboxProcess) => void,
): Promise<ProcessEnd & { readonly stdout: string; readonly stderr: string }> {
  const printed = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    process[name].on('data', (chunk: Buffer) => {
      printed[name] += chunk.toString();
      if (name === 'stdout') onOutput?.(chunk.toString(), process);
    });
  }
  return { ...(await process.ended), ...printed };
}

function sandboxOf(level: SandboxLevel, folder: string, warm: number): Sandbox {
  const state = new StateFolder(folder, { now: Date.now, onSetAside: () => undefined });
  const ignore = (): void => undefined;
  switch (level) {
    case 'docker':
      return new DockerSandbox({
        socket: dockerSocket,
        state,
        warm,
        images: {},
        allowed: ['*'],
        pipIndex: null,
        log: ignore,
      });
    case 'bubblewrap':
      return new BubblewrapSandbox(warm);
    case 'wasm':
      return new WasmSandbox({ state, warm, warn: ignore });
    case 'process':
      return new ProcessSandbox();
  }
}
