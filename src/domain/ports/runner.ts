/** The runner service: jobs, their files, and relics that are containers. */
import type { Capability } from '../action-types.ts';
import type { JsonObject } from '../json.ts';
import type { ImageBuild, SandboxLevel } from '../manifests/program.ts';
import type { RelicDefinition } from '../manifests/relic.ts';
import type { WorkspaceFile, WorkspaceResult } from '../workspace.ts';

/** A job for the runner (R1). Values are passed in `inputs`, never inside the code (P14). */
export interface RunnerJob {
  /** The runtime key and attempt. Submitting the same id twice runs it once. */
  readonly id: string;
  readonly session: string;
  readonly kind: Capability | 'tool';
  /** Source text: python code, a shell command line, or a script tool's source. Empty for a tool with an image. */
  readonly code: string;
  /** For a script of kind `tool`: the interpreter of `code`. */
  readonly runtime: 'python3' | 'node' | 'shell' | null;
  /** For kind `docker` and tools with an image: its name in the runner's engine. */
  readonly image?: string;
  /** For kind `docker`: literal arguments after the command; for scripts of kind `tool`: instead of the input as JSON. */
  readonly args?: readonly string[];
  /** For kind `tool`: the contents of its image, instead of `image` (R3). */
  readonly build?: ImageBuild;
  /** `inputs` of python, shell and docker; the parameters of a tool (R3). */
  readonly inputs: JsonObject;
  readonly limits: { readonly timeoutMs: number; readonly memoryMb: number | null; readonly cpus?: number };
  /** Required sandbox level (R2). */
  readonly sandbox?: SandboxLevel;
  /** Labels that a runner must have to get the job (R7). */
  readonly labels?: readonly string[];
  /** A second execution is harmless (S7): if its runner is gone, another one may run it (R7). */
  readonly movable?: boolean;
  /** The `traceparent` of the job (O1); absent: it is not traced. */
  readonly trace?: string;
  /** The files that its program sees (C7); absent: it has no workspace. */
  readonly workspace?: JobWorkspace;
}

/** The files of a session at the start of a job (C7). */
export interface JobWorkspace {
  readonly files: readonly WorkspaceFile[];
  /** Bytes that all files may have together at the end. */
  readonly maxBytes: number;
  /** The bytes of one of the files, for a runner that does not have them. */
  readonly read: (sha256: string) => Promise<Uint8Array>;
}

/** A sandbox that the runner may reserve, because the opening tag of an action that needs it was read. */
export interface PrewarmHint {
  readonly session: string;
  readonly kind: Capability | 'tool';
  /** For script tools. */
  readonly runtime: 'python3' | 'node' | 'shell' | null;
  readonly sandbox?: SandboxLevel;
  readonly labels?: readonly string[];
}

/** Why a job ended (R4); `build_failed`: its image could not be built, and it never ran. */
export type JobEnd = 'exited' | 'timeout' | 'killed' | 'oom' | 'output_limit' | 'lost' | 'build_failed';

export interface JobResult {
  readonly end: JobEnd;
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly truncated: boolean;
  /** What the program left in its workspace; absent unless it had one and ended by itself. */
  readonly workspace?: WorkspaceResult & {
    /** The bytes of changed files, each once, in any order. @throws EngineError `runner_unavailable` */
    readonly read: (
      hashes: readonly string[],
      signal: AbortSignal,
    ) => AsyncIterable<readonly [sha256: string, bytes: Uint8Array]>;
  };
}

/** One request to a relic that runs as a container. */
export interface RelicCall {
  /** Scope: the session's id, or a name shared by all sessions of a namespace. */
  readonly space: string;
  readonly relic: RelicDefinition;
  readonly method: string;
  /** Path and query, escaped. */
  readonly path: string;
  readonly body: JsonObject | null;
  readonly timeoutMs: number;
  /** The `traceparent` of the call (O1); absent: it is not traced. */
  readonly trace?: string;
}

export type RelicAnswer =
  | { readonly ok: true; readonly status: number; readonly type: string; readonly body: string }
  | {
      readonly ok: false;
      readonly code: 'relic_unavailable' | 'relic_broken' | 'relic_timeout' | 'relic_answer_too_large';
      readonly message: string;
      /** Nothing was sent to the service. */
      readonly beforeDispatch: boolean;
    };

/** Callbacks while a caller waits for a job. Aborting `signal` kills the job. */
export interface JobObserver {
  readonly signal: AbortSignal;
  /** Output of the job. `build` is output of its image build, which is not part of the job's output. */
  readonly output: (stream: 'stdout' | 'stderr' | 'build', text: string) => void;
  /** Called with the reason why a job waits before submission, whenever the reason changes. */
  readonly waiting?: (reason: string) => void;
}

/** The runner service as seen by the Worker: one runner or several (R7). */
export interface RunnerClient {
  /**
   * Runs a job. While no runner can be reached and nothing was sent, it waits, up to the job's timeout.
   *
   * @throws EngineError `runner_busy`, `runner_unavailable`, `runner_rejected` if the job was not accepted
   */
  run(job: RunnerJob, observe: JobObserver): Promise<JobResult>;
  /**
   * The result of a job that an earlier caller submitted (J2). Waits while it runs, and reports its output again from
   * the beginning. A job that its runner lost, or whose runner stays unreachable, ends as `lost`.
   *
   * @returns null if no runner knows the job: it was never started
   */
  lookup(job: Pick<RunnerJob, 'id' | 'session'>, observe: JobObserver): Promise<JobResult | null>;
  /**
   * Calls a relic's service (R5), and starts it first if necessary. Waits for a runner like `run`.
   *
   * @throws EngineError `runner_busy`, `runner_unavailable`, `runner_rejected` if the call was not sent
   */
  callRelic(call: RelicCall, observe: Pick<JobObserver, 'signal' | 'waiting'>): Promise<RelicAnswer>;
  /** Stops the relics of a scope; `forget` also removes their state. Unreachable runners are skipped. */
  stopRelics(space: string, options: { readonly forget: boolean }): Promise<void>;
  /** Deletes the cached files of a deleted session (C7). Unreachable runners are skipped: they delete unused files by age. */
  forgetWorkspace(session: string): Promise<void>;
  /** Asks for a sandbox to be prepared, without waiting. The runner releases unused ones. */
  prewarm(hint: PrewarmHint): void;
  /** Null if unreachable. */
  health(): Promise<JsonObject | null>;
}
