/**
 * The interface of sandboxes (R2): a sandbox starts one program with given data and can end all its processes. It does not
 * know jobs, sessions, ids and HTTP.
 */
import type { Readable } from 'node:stream';

import type { ImageBuild } from '../images/image-build.ts';
import { limits } from '../limits.ts';
import type { LaunchWorkspace } from '../workspace/workspace.ts';
import type { WarmState } from './warm-pool.ts';

/** Best first. A requested level is never replaced by a weaker one. */
export const SANDBOX_LEVELS = ['docker', 'bubblewrap', 'wasm', 'process'] as const;
export type SandboxLevel = (typeof SANDBOX_LEVELS)[number];

export const INTERPRETERS = ['python3', 'shell', 'node'] as const;
export type Interpreter = (typeof INTERPRETERS)[number];

/** Resource limits of a program. Each sandbox enforces what it can; the supervisor always limits time and output. */
export interface ResourceLimits {
  readonly memoryMb: number;
  /** CPU time per second; fractions are allowed. */
  readonly cpus: number;
  /** Concurrent processes and threads. */
  readonly processes: number;
  /** Maximum file size, and size of each writable directory. */
  readonly diskMb: number;
  readonly timeoutMs: number;
}

/** Default resources, and those of warm sandboxes. */
export const STANDARD: ResourceLimits = {
  memoryMb: limits.memoryMb,
  cpus: limits.cpus,
  processes: limits.processes,
  diskMb: limits.diskMb,
  timeoutMs: limits.maxTimeoutMs,
};

/** Whether a program can use a warm sandbox; its timeout does not matter, because the supervisor enforces it. */
export function isStandard({ memoryMb, cpus, processes, diskMb }: ResourceLimits): boolean {
  return (
    memoryMb === STANDARD.memoryMb &&
    cpus === STANDARD.cpus &&
    processes === STANDARD.processes &&
    diskMb === STANDARD.diskMb
  );
}

/** One program to run. Values are passed in `inputsJson`, `env`, `args` and `stdin`, never inside `source` (P14). */
export interface Launch extends ResourceLimits {
  readonly interpreter: Interpreter;
  /** `code`: an action's own code, with `inputs` predefined for python; `tool`: an unmodified script of a manifest (R3). */
  readonly entry: 'code' | 'tool';
  readonly source: string;
  /** Content of the file named by `CORTEX_INPUTS`. */
  readonly inputsJson: string;
  readonly args: readonly string[];
  /** The complete standard input; empty = end of file. */
  readonly stdin: string;
  /** Variables in addition to the sandbox's own; their names are validated. */
  readonly env: Readonly<Record<string, string>>;
  /** Absent: the program has no workspace. */
  readonly workspace?: LaunchWorkspace;
}

/** One program of an image, with its data. */
export interface ImageLaunch extends ResourceLimits {
  /** Reference of an existing image. */
  readonly image: string;
  /** A shell command to which `args` are appended verbatim; null = the image's own. */
  readonly command: string | null;
  readonly args: readonly string[];
  readonly inputsJson: string;
  readonly stdin: string;
  readonly env: Readonly<Record<string, string>>;
  readonly workspace?: LaunchWorkspace;
  /** Where the program starts. */
  readonly directory?: '/work' | '/workspace';
}

export interface ProcessEnd {
  /** Null if a signal ended it. */
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** The memory limit killed it (R4). */
  readonly oom: boolean;
  /** Its host disappeared, and its end is unknown. */
  readonly lost?: boolean;
}

/** A started program with all its processes. */
export interface SandboxProcess {
  readonly stdout: Readable;
  readonly stderr: Readable;
  /**
   * Resolves when all its processes are gone, its pipes are closed, and what it left in its workspace was taken. Never
   * rejects.
   */
  readonly ended: Promise<ProcessEnd>;
  /** Sends TERM to the whole tree. */
  terminate(): void;
  /** Sends KILL to the whole tree. */
  kill(): void;
}

/** Whether an interpreter can run here, or why not. */
export type Availability = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** A reserved sandbox; it is used or released. */
export interface Held<What = Launch> {
  start(launch: What): Promise<SandboxProcess>;
  /** Returns it to the pool. */
  release(): void;
}

export interface Sandbox {
  readonly level: SandboxLevel;
  /** Additional protection by the operating system, for people; known after `probe`. */
  readonly hardening?: readonly string[];
  /** State of the warm sandboxes. */
  readonly warm?: WarmState;
  /** Tests the interpreters by running programs. Called once, before `start`. */
  probe(): Promise<Readonly<Record<Interpreter, Availability>>>;
  /** Starts warming an interpreter for expected jobs; returns immediately. */
  prepare?(interpreter: Interpreter): void;
  /** @throws Error if the program could not be started */
  start(launch: Launch): Promise<SandboxProcess>;
  /** Reserves a warm sandbox, or creates one. @throws Error if that fails */
  hold?(interpreter: Interpreter): Promise<Held>;
  /** Runs a program of an image; only with containers. @throws Error if the image is missing or does not start */
  startImage?(launch: ImageLaunch): Promise<SandboxProcess>;
  /** Reserves a container of an image. @throws Error if that fails */
  holdImage?(image: string): Promise<Held<ImageLaunch>>;
  /** Builds a tool's image, or finds an existing one. @throws BuildFailure */
  buildImage?(build: ImageBuild, progress: (text: string) => void, signal: AbortSignal): Promise<string>;
  /** Ends the warm sandboxes. Started programs belong to their caller. */
  close(): Promise<void>;
}

export function everywhere(availability: Availability): Record<Interpreter, Availability> {
  return { python3: availability, shell: availability, node: availability };
}

export function unavailable(reason: string): Availability {
  return { ok: false, reason };
}
