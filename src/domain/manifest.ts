/**
 * Manifests after validation, with every default filled in: what the engine and the executors read.
 * The YAML side, its tolerance and its messages are the catalogue's (`src/catalog/`).
 */
import type { ActionType, Capability, Effects, ImportedType } from './action-types.ts';
import type { RetryPolicy } from './action.ts';
import type { Json, JsonObject } from './json.ts';

export interface ManifestBase {
  readonly name: string;
  readonly version: string;
  readonly summary: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly metadata: JsonObject;
}

/** `collect` and `refuse` are the engine's own: no manifest names them. */
export type BuiltinName = 'collect' | 'refuse' | 'echo' | 'calculator' | 'web_fetch' | 'web_extract' | 'json_query';
export type ScriptRuntime = 'python3' | 'node' | 'shell';
/** How programs are held on a runner, strongest first (R2). */
export const SANDBOX_LEVELS = ['docker', 'bubblewrap', 'wasm', 'process'] as const;
export type SandboxLevel = (typeof SANDBOX_LEVELS)[number];

/** What a program asks of the place that it runs at. */
export interface RunnerNeeds {
  /** This level and no other (R2); absent: the best that the runner has. */
  readonly sandbox?: SandboxLevel;
  /** Labels that the runner must have (R7). */
  readonly labels?: readonly string[];
}

export type ToolImplementation =
  | { readonly type: 'builtin'; readonly entrypoint: BuiltinName }
  | ({
      readonly type: 'script';
      readonly runtime: ScriptRuntime;
      readonly source: string;
      readonly memoryMb: number | null;
      readonly cpus: number | null;
    } & RunnerNeeds)
  | {
      readonly type: 'http';
      readonly url: string;
      readonly method: string;
      readonly headers: Readonly<Record<string, string>>;
      /** Of a run: why a secret that the request names cannot be had (X3). */
      readonly missingSecret?: string;
      /** Of a run: the operator's secret is in it, so variables of the agent that imports it are not (X3). */
      readonly sealed?: boolean;
    }
  | ({
      readonly type: 'container';
      /** An image by name, or null where it is made from `build`. */
      readonly image: string | null;
      readonly build: ImageBuild | null;
      readonly memoryMb: number | null;
      readonly cpus: number | null;
    } & RunnerNeeds)
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

/** Provider presets (docs/models.md); `openai` also fits any compatible endpoint. */
export const MODEL_PROVIDERS = [
  'openai',
  'anthropic',
  'gemini',
  'groq',
  'mistral',
  'deepseek',
  'openrouter',
  'workers-ai',
  'ai-gateway',
  'ollama',
  'vllm',
  'llama.cpp',
  'demo',
] as const;
export type ModelProviderName = (typeof MODEL_PROVIDERS)[number];

/** Which of several models is asked first; the others follow when it cannot answer (L2). */
export const ROUTING_POLICIES = ['failover', 'least_latency', 'lowest_cost'] as const;
export type RoutingPolicy = (typeof ROUTING_POLICIES)[number];

export interface ModelChoice {
  /** Null = the one that the endpoint belongs to, or whatever the deployment configures. */
  readonly provider: ModelProviderName | null;
  readonly model: string | null;
  readonly endpoint: string | null;
  /** Name of the secret that holds the endpoint's key, `TOOL_…` (L7, X3). */
  readonly keySecret: string | null;
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
    /** Asked in this order when those before cannot answer. */
    readonly fallbacks: readonly ModelChoice[];
    readonly routing: RoutingPolicy;
    /** How long a model may be silent; null = the provider's default. */
    readonly firstTokenMs: number | null;
    readonly betweenTokensMs: number | null;
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
  readonly capabilities: readonly Capability[];
  /** What its python and shell ask of the place that they run at. */
  readonly runner?: RunnerNeeds;
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
  readonly feeds: readonly FeedDefinition[];
  readonly memory: MemoryPolicy;
  readonly variables: Readonly<Record<string, string>>;
  /** Names of the secrets that its tools may use, `TOOL_…` (X3). */
  readonly secrets: readonly string[];
}

/** Where a feed's value comes from (F1). `name` is the source's own: an internal source, a tool, a relic, … */
export interface FeedSource {
  readonly type: Exclude<ActionType, Capability>;
  readonly name: string;
  /** A relic's endpoint; null for the others. */
  readonly action: string | null;
  readonly params: JsonObject;
}

/** A value that is kept current in the prompt (F1). */
export interface FeedDefinition {
  readonly id: string;
  /** `on_demand`: at the start of an iteration when its cache is stale; `periodic`: by the clock, too (F3). */
  readonly when: 'on_demand' | 'periodic';
  /** Of periodic feeds; null for the others. */
  readonly intervalMs: number | null;
  /** How long a value counts as fresh. */
  readonly cacheTtlMs: number;
  /** Longer values are cut, visibly (F4). */
  readonly maxTokens: number;
  readonly enabled: boolean;
  readonly source: FeedSource;
  readonly onError: 'skip' | 'use_cached' | 'use_default';
  /** Shown when `onError` is `use_default`. */
  readonly defaultValue: Json;
  /** Of periodic feeds: the source is asked again and again although its effects are unsafe (S7). Default false. */
  readonly allowUnsafe?: boolean;
}

/** One thing that a relic can be asked to do. */
export interface RelicEndpoint {
  readonly name: string;
  readonly summary: string;
  /** JSON Schema of the parameters object. */
  readonly parameters: JsonObject;
  readonly returns: JsonObject | null;
  readonly effects: Effects;
  readonly timeoutMs: number | null;
  /** How a container's service is asked; ignored by edge relics. */
  readonly http: { readonly method: string; readonly path: string };
}

export type RelicImplementation =
  /** Backed by a Durable Object; needs no runner (R6). */
  | {
      readonly type: 'edge';
      readonly store: 'kv' | 'log' | 'sql';
      /** Default lifetime of an entry; null = unlimited. */
      readonly ttlMs: number | null;
      readonly quotaBytes: number;
      /** Of `sql`: statements that run once, when the store is made. */
      readonly schema: readonly string[];
    }
  /** A service on the runner (R5). */
  | {
      readonly type: 'container';
      /** An image by name, or null where it is built from `build`. */
      readonly image: string | null;
      readonly build: ImageBuild | null;
      readonly command: readonly string[] | null;
      readonly port: number;
      readonly health: { readonly path: string; readonly intervalMs: number; readonly startMs: number };
      readonly memoryMb: number | null;
      readonly cpus: number | null;
      /** Labels that the runner must have (R7). */
      readonly labels?: readonly string[];
    };

/** What an image is made of: files by path, and what is started. */
export interface ImageBuild {
  readonly base: 'python3' | 'node' | 'shell';
  readonly files: Readonly<Record<string, string>>;
  readonly entrypoint: string;
  readonly requirements: readonly string[];
}

/** A service that outlives a call: a store, a database, an index (R5, R6). */
export interface RelicDefinition extends ManifestBase {
  readonly kind: 'Relic';
  readonly implementation: RelicImplementation;
  /** Whose it is: each session's own, or one for all sessions of the API key's namespace. */
  readonly scope: 'session' | 'shared';
  /** Whether its state outlives a stop. */
  readonly persistent: boolean;
  /** Stopped after so long without a call. */
  readonly idleMs: number;
  readonly endpoints: Readonly<Record<string, RelicEndpoint>>;
}

export type WorkflowTrigger =
  | { readonly type: 'manual' }
  /** `cron` has five or six fields; `timezone` is an IANA name. */
  | { readonly type: 'scheduled'; readonly cron: string; readonly timezone: string; readonly inputs: JsonObject }
  /** Signed with the named secret (X3). */
  | { readonly type: 'webhook'; readonly secret: string }
  | { readonly type: 'event'; readonly event: string };

export type StepType = Exclude<ActionType, Capability> | 'conditional' | 'parallel' | 'for_each';

/** One step of a workflow (M6). Fields that a type has no use for are null or empty. */
export interface WorkflowStep {
  readonly name: string;
  readonly type: StepType;
  /** The tool, agent, relic, workflow, model or internal action. */
  readonly target: string | null;
  /** A relic's endpoint. */
  readonly action: string | null;
  readonly parameters: JsonObject;
  /** CEL, or null. */
  readonly condition: string | null;
  /** Null: after the step before it; an empty list: at once. */
  readonly dependsOn: readonly string[] | null;
  readonly timeoutMs: number | null;
  readonly onFailure: 'abort' | 'continue' | 'retry' | 'skip';
  /** Steps that undo or report when this one has failed. */
  readonly compensate: readonly WorkflowStep[];
  readonly retry: RetryPolicy | null;
  /** Name of an output to the path in this step's result that it takes. */
  readonly outputMapping: Readonly<Record<string, string>>;
  /** Of `conditional` (when true), `parallel` and `for_each` (for every item). */
  readonly steps: readonly WorkflowStep[];
  /** Of `conditional`, when false. */
  readonly otherwise: readonly WorkflowStep[];
  /** Of `for_each`: a reference to a list, or the list itself. */
  readonly items: Json;
  /** Of `for_each` and `parallel`: how many at a time. */
  readonly concurrency: number | null;
}

/** Steps in an order, run by the same scheduler as a generation's actions (M6). */
export interface WorkflowDefinition extends ManifestBase {
  readonly kind: 'Workflow';
  readonly trigger: WorkflowTrigger;
  /** Names of what its steps use (X4). */
  readonly imports: AgentDefinition['imports'];
  /** JSON Schema of the inputs. */
  readonly inputs: JsonObject;
  readonly steps: readonly WorkflowStep[];
  /** Output name to the path that it is read from, such as `steps.s.field`. */
  readonly outputs: Readonly<Record<string, string>>;
  readonly failFast: boolean;
  readonly maxParallelSteps: number;
}

/** How much of a conversation goes to the model again (M8). */
export interface MemoryPolicy {
  /** Turns that are kept verbatim; older ones are omitted or summarised. Null: `limits.historyTurns`. */
  readonly maxTurns: number | null;
  /** Turns after which the older ones are summarised; null = never. */
  readonly summarizeAfter: number | null;
}

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

/** What an agent or a workflow may use: the definitions that it imports, by the name that it knows them by. */
export interface ImportedDefinitions {
  readonly tools: ReadonlyMap<string, ToolDefinition>;
  readonly relics: ReadonlyMap<string, RelicDefinition>;
  readonly workflows: ReadonlyMap<string, WorkflowDefinition>;
  /** Sub-agents: what a caller needs to know of them. */
  readonly agents: ReadonlyMap<string, ManifestBase>;
  /** Every name in the catalogue by kind, so that a wrong name can be answered with the nearest ones. */
  readonly knownNames: Readonly<Record<ImportedType, readonly string[]>>;
  /** What of it came with the deployment, and may use the operator's secrets (X3): the importer itself, and tools by name. */
  readonly bundled?: { readonly subject: boolean; readonly tools: readonly string[] };
}

/** Everything one run may look up: its agent and the definitions that it imports. */
export interface ResolvedAgent extends ImportedDefinitions {
  readonly agent: AgentDefinition;
}

/** Everything one run of a workflow may look up. */
export interface ResolvedWorkflow extends ImportedDefinitions {
  readonly workflow: WorkflowDefinition;
}
