/** Tools after validation. */
import type { Effects } from '../action-types.ts';
import type { RetryPolicy } from '../action.ts';
import type { Json, JsonObject } from '../json.ts';
import type { ManifestBase } from './base.ts';
import type { ImageBuild, RunnerNeeds, ScriptLaunch, ScriptRuntime } from './program.ts';

/** `collect` and `refuse` are internal: manifests cannot use them. */
export type BuiltinName =
  | 'collect'
  | 'value'
  | 'refuse'
  | 'echo'
  | 'calculator'
  | 'web_fetch'
  | 'web_extract'
  | 'json_query';

export type ToolImplementation =
  /** The caller executes it (C3). `passed`: a message brought it; the agent does not have it. */
  | { readonly type: 'client'; readonly passed?: true }
  | { readonly type: 'builtin'; readonly entrypoint: BuiltinName }
  | {
      /** TypeScript of the project, bundled into its Worker (K2). */
      readonly type: 'code';
      /** Names of the Worker's bindings that it may use. */
      readonly bindings: readonly string[];
      /** Names of the secrets that it may read, `TOOL_…`. */
      readonly secrets: readonly string[];
      /** Set in a run: why a secret is not available (X3). */
      readonly missingSecret?: string;
    }
  | {
      /** A tool of a server of the Model Context Protocol; manifests of tools cannot use it (E5). */
      readonly type: 'mcp';
      /** The agent's name for the server. */
      readonly server: string;
      readonly url: string;
      /** The secret that is sent as a bearer token; null: none. */
      readonly auth: string | null;
      /** Whether a bundled manifest names the secret (X3). */
      readonly bundled: boolean;
      /** The server's name of the tool; null: it reads the server's resources. */
      readonly tool: string | null;
      /** Set in a run: why the secret is not available (X3). */
      readonly missingSecret?: string;
    }
  | ({
      readonly type: 'script';
      readonly runtime: ScriptRuntime;
      readonly source: string;
      /** Absent: the script runs as it is, with its input as JSON in the first argument (R3). */
      readonly launch?: ScriptLaunch;
      readonly memoryMb: number | null;
      readonly cpus: number | null;
    } & RunnerNeeds)
  | {
      readonly type: 'http';
      /** Like the values of `headers`, may contain `{parameter}` (request-template.ts). */
      readonly url: string;
      readonly method: string;
      readonly headers: Readonly<Record<string, string>>;
      /** Set in a run: why a secret of the request is not available (X3). */
      readonly missingSecret?: string;
      /** Set in a run: it contains the operator's secret, so the importing agent's variables are not used (X3). */
      readonly sealed?: boolean;
    }
  | ({
      readonly type: 'container';
      /** An image by name, or null if it is built from `build`. */
      readonly image: string | null;
      readonly build: ImageBuild | null;
      readonly memoryMb: number | null;
      readonly cpus: number | null;
    } & RunnerNeeds);

export interface ToolDefinition extends ManifestBase {
  readonly kind: 'Tool';
  readonly implementation: ToolImplementation;
  /** JSON Schema of the parameters object, regardless of the form in the manifest. */
  readonly parameters: JsonObject;
  readonly returns: JsonObject | null;
  readonly effects: Effects;
  readonly approval: 'never' | 'always';
  readonly dispatch: 'eager' | 'after_generation';
  readonly concurrency: number | null;
  readonly timeoutMs: number | null;
  readonly retry: RetryPolicy | null;
  readonly cacheTtlMs: number | null;
  /** False: its program sees no workspace (C7). Default: it does, unless it is `pure`. */
  readonly workspace?: false;
  /** Clients of the protocol may call it (E4). */
  readonly expose?: 'mcp';
  readonly examples: readonly Json[];
}

/** What a model is told about a tool on demand (L4). */
export interface ToolDescription {
  readonly name: string;
  readonly summary: string;
  /** Whether a person is asked first. */
  readonly note?: string;
  /** One line per parameter. */
  readonly parameters: string;
  readonly returns?: string;
  readonly example?: string;
}

/** Whether the tool came with a message. */
export function isPassed({ implementation }: Pick<ToolDefinition, 'implementation'>): boolean {
  return implementation.type === 'client' && implementation.passed === true;
}
