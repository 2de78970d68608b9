/** Programs of manifests, and where they may run. */

export type ScriptRuntime = 'python3' | 'node' | 'shell';

/** Isolation levels of programs on a runner, strongest first (R2). */
export const SANDBOX_LEVELS = ['docker', 'bubblewrap', 'wasm', 'process'] as const;

export type SandboxLevel = (typeof SANDBOX_LEVELS)[number];

/** A program's requirements for the runner. */
export interface RunnerNeeds {
  /** The required level (R2); absent: the runner's strongest level. */
  readonly sandbox?: SandboxLevel;
  /** Labels that the runner must have (R7). */
  readonly labels?: readonly string[];
}

/** How a script starts, if it needs more than its input. */
export interface ScriptLaunch {
  /** Its path among `files`. */
  readonly path: string;
  /** Further files by path, relative to the same folder. */
  readonly files: Readonly<Record<string, string>>;
  /** First argument: `json`, `file` (the path of a file with the JSON), or the text of one parameter. */
  readonly argument: 'json' | 'file' | { readonly parameter: string };
  readonly environment: Readonly<Record<string, string>>;
  /** For runtime `shell`: the script is written for bash, which runs it where the sandbox has it. */
  readonly bash: boolean;
}

/** Contents of an image: files by path, and the entry point. */
export interface ImageBuild {
  readonly base: 'python3' | 'node' | 'shell';
  readonly files: Readonly<Record<string, string>>;
  readonly entrypoint: string;
  readonly requirements: readonly string[];
}
