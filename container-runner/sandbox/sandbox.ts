/**
 * What a sandbox is to the rest of the runner (R2): it starts one program with given data and can
 * end everything that the program started. It knows nothing of jobs, sessions, ids or HTTP.
 */
import type { Readable } from 'node:stream';

import type { ImageBuild } from '../images/image-build.ts';
import { limits } from '../limits.ts';
import type { WarmState } from './warm-pool.ts';

/** Best first. A level that is asked for is never replaced by a weaker one. */
export const SANDBOX_LEVELS = ['docker', 'bubblewrap', 'wasm', 'process'] as const;
export type SandboxLevel = (typeof SANDBOX_LEVELS)[number];

export const INTERPRETERS = ['python3', 'shell', 'node'] as const;
export type Interpreter = (typeof INTERPRETERS)[number];

/** What a program may take. Each sandbox enforces what it can; the supervisor sees to time and output in any case. */
export interface ResourceLimits {
  readonly memoryMb: number;
  /** Processors' worth of time; fractions are fine. */
  readonly cpus: number;
  /** Processes and threads at once. */
  readonly processes: number;
  /** The largest file, and each of the places that may be written to. */
  readonly diskMb: number;
  readonly timeoutMs: number;
}

/** What a program gets that asks for nothing; what waits ahead of time waits with this. */
export const STANDARD: ResourceLimits = {
  memoryMb: limits.memoryMb,
  cpus: limits.cpus,
  processes: limits.processes,
  diskMb: limits.diskMb,
  timeoutMs: limits.maxTimeoutMs,
};

/** Whether a program can take what waits with the standard resources; its time is the supervisor's in any case. */
export function isStandard({ memoryMb, cpus, processes, diskMb }: ResourceLimits): boolean {
  return (
    memoryMb === STANDARD.memoryMb &&
    cpus === STANDARD.cpus &&
    processes === STANDARD.processes &&
    diskMb === STANDARD.diskMb
  );
}

/** One program to run. Values travel in `inputsJson`, `env`, `args` and `stdin`, never inside `source` (P14). */
export interface Launch extends ResourceLimits {
  readonly interpreter: Interpreter;
  /** `code`: an action's own code, with `inputs` predefined for python; `tool`: a script as its manifest has it (R3). */
  readonly entry: 'code' | 'tool';
  readonly source: string;
  /** What the file named by `CORTEX_INPUTS` holds. */
  readonly inputsJson: string;
  readonly args: readonly string[];
  /** The whole of standard input; empty = end of file at once. */
  readonly stdin: string;
  /** Variables on top of the sandbox's own few; names are already judged. */
  readonly env: Readonly<Record<string, string>>;
}

/** One program of an image, with its data. */
export interface ImageLaunch extends ResourceLimits {
  /** Reference of an image that is in the engine. */
  readonly image: string;
  /** A shell command, which `args` follow as they are; null = the image's own. */
  readonly command: string | null;
  readonly args: readonly string[];
  readonly inputsJson: string;
  readonly stdin: string;
  readonly env: Readonly<Record<string, string>>;
}

export interface ProcessEnd {
  /** Null when a signal ended it. */
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** The memory limit ended it (R4). */
  readonly oom: boolean;
  /** What ran it went away, and nobody knows how it ended. */
  readonly lost?: boolean;
}

/** A started program with everything that it starts. */
export interface SandboxProcess {
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Resolves when nothing of it is left and its pipes are closed. Never rejects. */
  readonly ended: Promise<ProcessEnd>;
  /** Asks the whole tree to stop (TERM). */
  terminate(): void;
  /** Ends the whole tree at once (KILL). */
  kill(): void;
}

/** What an interpreter needs to run here, or why it cannot. */
export type Availability = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** A sandbox that is kept for somebody, and used or released. */
export interface Held<What = Launch> {
  start(launch: What): Promise<SandboxProcess>;
  /** Back to those who have asked for nothing. */
  release(): void;
}

export interface Sandbox {
  readonly level: SandboxLevel;
  /** What of the operating system it uses beyond the least, for people; known after `probe`. */
  readonly hardening?: readonly string[];
  /** What is held ready now. */
  readonly warm?: WarmState;
  /** Found out by running something, not by looking. Called once, before `start`. */
  probe(): Promise<Readonly<Record<Interpreter, Availability>>>;
  /** Holds an interpreter ready, because jobs for it will come; returns at once. */
  prepare?(interpreter: Interpreter): void;
  /** @throws Error when the program could not be started at all */
  start(launch: Launch): Promise<SandboxProcess>;
  /** Takes one that is ready out of turn, or makes one. @throws Error when it could not be made */
  hold?(interpreter: Interpreter): Promise<Held>;
  /** Programs of images; only where there are containers. @throws Error when the image is not there or does not start */
  startImage?(launch: ImageLaunch): Promise<SandboxProcess>;
  /** Makes one for a program of an image. @throws Error when it could not be made */
  holdImage?(image: string): Promise<Held<ImageLaunch>>;
  /** Makes a tool's image, or finds it made. @throws BuildFailure */
  buildImage?(build: ImageBuild, progress: (text: string) => void, signal: AbortSignal): Promise<string>;
  /** Ends what is held ready. Started programs are their starter's. */
  close(): Promise<void>;
}

export function everywhere(availability: Availability): Record<Interpreter, Availability> {
  return { python3: availability, shell: availability, node: availability };
}

export function unavailable(reason: string): Availability {
  return { ok: false, reason };
}
