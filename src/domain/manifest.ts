/**
 * Manifests after validation, with every default filled in: what the engine and the executors read.
 * The YAML side, its tolerance and its messages are the catalogue's (`src/catalog/`).
 */
import type { ActionType, Effects, RetryPolicy } from './action.ts';
import type { Json, JsonObject } from './json.ts';

export interface ManifestBase {
  readonly name: string;
  readonly version: string;
  readonly summary: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly metadata: JsonObject;
}

export type BuiltinName = 'echo' | 'calculator' | 'web_fetch' | 'web_extract' | 'json_query';
export type ScriptRuntime = 'python3' | 'node' | 'shell';

export type ToolImplementation =
  | { readonly type: 'builtin'; readonly entrypoint: BuiltinName }
  | {
      readonly type: 'script';
      readonly runtime: ScriptRuntime;
      readonly source: string;
      readonly memoryMb: number | null;
    }
  | {
      readonly type: 'http';
      readonly url: string;
      readonly method: string;
      readonly headers: Readonly<Record<string, string>>;
    }
  | { readonly type: 'container'; readonly image: string; readonly memoryMb: number | null }
  | { readonly type: 'mcp'; readonly url: string };

export interface ToolDefinition extends ManifestBase {
  readonly kind: 'Tool';
  readonly implementation: ToolImplementation;
  /** JSON Schema of the parameters object, whatever form the manifest used. */
  readonly parameters: JsonObject;
  readonly returns: JsonObject | null;
  readonly effects: Effects;
  readonly approval: 'never' | 'always';
  readonly dispatch: 'eager' | 'after_generation';
  readonly concurrency: number | null;
  readonly timeoutMs: number | null;
  readonly retry: RetryPolicy | null;
  readonly cacheTtlMs: number | null;
  readonly examples: readonly Json[];
}

export interface ModelChoice {
  /** `openai` for any compatible endpoint, `demo` for the keyless one; null = whatever the deployment configures. */
  readonly provider: 'openai' | 'demo' | null;
  readonly model: string | null;
  readonly endpoint: string | null;
}

/** What a model costs, in US dollars per million tokens. */
export interface ModelPrice {
  readonly input: number;
  readonly output: number;
  /** Of prompt tokens that the endpoint had in its cache. */
  readonly cachedInput: number;
}

export interface AgentDefinition extends ManifestBase {
  readonly kind: 'Agent';
  readonly persona: { readonly agent: string; readonly user: string; readonly examples: readonly string[] };
  readonly engine: {
    readonly primary: ModelChoice;
    readonly fallback: ModelChoice | null;
    readonly parameters: JsonObject;
    /** By model; they go before the prices that the runtime knows (S12). */
    readonly prices: Readonly<Record<string, ModelPrice>>;
  };
  /** Names of what may be called (X4). */
  readonly imports: {
    readonly tools: readonly string[];
    readonly agents: readonly string[];
    readonly relics: readonly string[];
    readonly workflows: readonly string[];
  };
  readonly capabilities: readonly ('python' | 'shell' | 'docker')[];
  readonly internalActions: {
    readonly enabled: boolean;
    readonly allowed: readonly string[] | null;
    readonly blocked: readonly string[];
  };
  readonly protocol: ProtocolOptions;
  readonly loop: {
    readonly mode: 'autonomous' | 'supervised';
    readonly maxIterations: number;
    readonly maxParallelActions: number;
    /** Slots of single action types; a type that is not named has only the run's (S5). */
    readonly maxParallelByType: Readonly<Partial<Record<ActionType, number>>>;
    readonly failFast: boolean;
    readonly streamThoughts: boolean;
    readonly streamActionResults: boolean;
  };
  readonly budgets: {
    readonly seconds: number;
    readonly modelCalls: number;
    readonly tokens: number | null;
    /** US dollars. */
    readonly cost: number | null;
    readonly actions: number;
  };
  readonly variables: Readonly<Record<string, string>>;
}

/** What a model may do to its own session (I); the manifest's policy narrows it. */
export const INTERNAL_ACTIONS = [
  'add_context_feed',
  'remove_context_feed',
  'update_context_feed',
  'list_context_feeds',
  'clear_context',
  'set_variable',
  'delete_variable',
] as const;
export type InternalAction = (typeof INTERNAL_ACTIONS)[number];

/** `protocol:` of an agent's manifest (M8). */
export interface ProtocolOptions {
  readonly form: 'full' | 'compact';
  readonly dialect: 'auto' | 'protocol' | 'tool_calls';
  readonly json: 'repair' | 'strict';
  readonly bareText: 'answer' | 'thought' | 'reject';
  readonly responseDefault: 'auto' | 'final' | 'continue';
  readonly onFailedFinal: 'continue' | 'end';
  readonly actInReasoning: boolean;
}

export const DEFAULT_PROTOCOL: ProtocolOptions = {
  form: 'full',
  dialect: 'auto',
  json: 'repair',
  bareText: 'answer',
  responseDefault: 'auto',
  onFailedFinal: 'continue',
  actInReasoning: false,
};

/** Everything one run may look up: its agent and the definitions that it imports. */
export interface ResolvedAgent {
  readonly agent: AgentDefinition;
  readonly tools: ReadonlyMap<string, ToolDefinition>;
  /** Every name in the catalogue by kind, so that a wrong name can be answered with the nearest ones. */
  readonly knownNames: Readonly<Record<'tool' | 'agent' | 'relic' | 'workflow', readonly string[]>>;
}
