/**
 * Manifests after validation, with all defaults filled in, as the engine and the executors read them.
 * The catalogue (`src/catalog/`) owns the YAML form and its error messages.
 */
import type { ActionType, Capability, Effects, ImportedType, ManifestActionType } from './action-types.ts';
import type { RetryPolicy } from './action.ts';
import type { Json, JsonObject } from './json.ts';
import type { LearnedShapes } from './shape.ts';

export interface ManifestBase {
  readonly name: string;
  readonly version: string;
  readonly summary: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly metadata: JsonObject;
  /** For agents and workflows that only their importers see: the file that distinguishes them from others with this name. */
  readonly scope?: string;
}

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
  readonly examples: readonly Json[];
}

/** Provider presets (docs/models.md). `openai` also works for any compatible endpoint. */
export const MODEL_PROVIDERS = [
  'openai',
  'anthropic',
  'gemini',
  'groq',
  'mistral',
  'deepseek',
  'openrouter',
  'xai',
  'workers-ai',
  'ai-gateway',
  'ollama',
  'vllm',
  'llama.cpp',
  'demo',
] as const;
export type ModelProviderName = (typeof MODEL_PROVIDERS)[number];

/** The order in which several models are tried; the next one is used if a model cannot answer (L2). */
export const ROUTING_POLICIES = ['failover', 'least_latency', 'lowest_cost'] as const;
export type RoutingPolicy = (typeof ROUTING_POLICIES)[number];

export interface ModelChoice {
  /** Null means the provider of the endpoint, or the deployment's default. */
  readonly provider: ModelProviderName | null;
  readonly model: string | null;
  readonly endpoint: string | null;
  /** Name of the secret with the endpoint's key, `TOOL_…` (L7, X3). */
  readonly keySecret: string | null;
  /** Whether the model takes images; absent: the engine's setting. */
  readonly vision?: boolean;
}

/** Price of a model, in US dollars per million tokens. */
export interface ModelPrice {
  readonly input: number;
  readonly output: number;
  /** For prompt tokens that the endpoint had cached. */
  readonly cachedInput: number;
}

export interface AgentDefinition extends ManifestBase {
  readonly kind: 'Agent';
  readonly persona: { readonly agent: string; readonly user: string; readonly examples: readonly string[] };
  readonly engine: {
    readonly primary: ModelChoice;
    /** Tried in this order if the previous models cannot answer. */
    readonly fallbacks: readonly ModelChoice[];
    readonly routing: RoutingPolicy;
    /** Maximum silence of a model; null means the provider's default. */
    readonly firstTokenMs: number | null;
    readonly betweenTokensMs: number | null;
    readonly parameters: JsonObject;
    /** Prices by model, which override the known prices (S12). */
    readonly prices: Readonly<Record<string, ModelPrice>>;
    /** Whether its models take images; absent: found out with the first image (C2). */
    readonly vision?: boolean;
  };
  /** Names of callable targets (X4). */
  readonly imports: {
    readonly tools: readonly string[];
    readonly agents: readonly string[];
    readonly relics: readonly string[];
    readonly workflows: readonly string[];
    /** Names of its skills (C8); absent in workflows, and in definitions that are older than skills. */
    readonly skills?: readonly string[];
  };
  readonly capabilities: readonly Capability[];
  /** Runner requirements of its python and shell actions. */
  readonly runner?: RunnerNeeds;
  /** False: its python, shell and docker actions see no workspace (C7). Default: they do. */
  readonly workspace?: false;
  readonly internalActions: {
    readonly enabled: boolean;
    readonly allowed: readonly string[] | null;
    readonly blocked: readonly string[];
  };
  readonly protocol: ProtocolOptions;
  /** Whether a message may pass client tools (C3). Default: deny. */
  readonly clientTools?: 'allow' | 'deny';
  readonly loop: {
    readonly mode: 'autonomous' | 'supervised';
    readonly maxIterations: number;
    readonly maxParallelActions: number;
    /** Slots per action type. An absent type has only the run's limit (S5). */
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

/** What `type` of a feed may say (F1): when it is refreshed, or its source. */
export const FEED_TYPES = ['on_demand', 'periodic', 'internal', 'relic', 'tool', 'workflow', 'llm'] as const;

/** The source of a feed's value (F1). `name` is an internal source, a tool, a relic, … */
export interface FeedSource {
  readonly type: ManifestActionType;
  readonly name: string;
  /** A relic's endpoint; null for other sources. */
  readonly action: string | null;
  readonly params: JsonObject;
}

/** A value that is kept current in the prompt (F1). */
export interface FeedDefinition {
  readonly id: string;
  /** `on_demand`: at the start of an iteration if its cache is stale; `periodic`: also by a timer (F3). */
  readonly when: 'on_demand' | 'periodic';
  /** For periodic feeds; otherwise null. */
  readonly intervalMs: number | null;
  /** How long a value counts as fresh. */
  readonly cacheTtlMs: number;
  /** Longer values are cut, with a marker (F4). */
  readonly maxTokens: number;
  readonly enabled: boolean;
  /** Text with a variable that decides in each session instead of `enabled` (M5). */
  readonly enabledBy?: string;
  readonly source: FeedSource;
  readonly onError: 'skip' | 'use_cached' | 'use_default';
  /** Shown when `onError` is `use_default`. */
  readonly defaultValue: Json;
  /** For periodic feeds: the source is called repeatedly although its effects are unsafe (S7). Default false. */
  readonly allowUnsafe?: boolean;
  /** All sessions of a namespace use one fetch of the source (F6). Default false. */
  readonly shared?: boolean;
}

/** One operation of a relic. */
export interface RelicEndpoint {
  readonly name: string;
  readonly summary: string;
  /** JSON Schema of the parameters object. */
  readonly parameters: JsonObject;
  readonly returns: JsonObject | null;
  readonly effects: Effects;
  readonly timeoutMs: number | null;
  /** The request to a container's service; ignored by edge relics. */
  readonly http: { readonly method: string; readonly path: string };
}

export type RelicImplementation =
  /** Backed by a Durable Object; needs no runner (R6). */
  | {
      readonly type: 'edge';
      readonly store: 'kv' | 'log' | 'sql';
      /** Default lifetime of an entry; null means unlimited. */
      readonly ttlMs: number | null;
      readonly quotaBytes: number;
      /** For `sql`: statements that run once, when the store is created. */
      readonly schema: readonly string[];
    }
  /** A service on the runner (R5). */
  | {
      readonly type: 'container';
      /** An image by name, or null if it is built from `build`. */
      readonly image: string | null;
      readonly build: ImageBuild | null;
      readonly command: readonly string[] | null;
      readonly port: number;
      readonly health: { readonly path: string; readonly intervalMs: number; readonly startMs: number };
      readonly memoryMb: number | null;
      readonly cpus: number | null;
      /** Environment variables of the service. */
      readonly environment?: Readonly<Record<string, string>>;
      /** Directory of the state in the container. Default: the runner's. */
      readonly state?: string;
      /** Labels that the runner must have (R7). */
      readonly labels?: readonly string[];
    };

/** Contents of an image: files by path, and the entry point. */
export interface ImageBuild {
  readonly base: 'python3' | 'node' | 'shell';
  readonly files: Readonly<Record<string, string>>;
  readonly entrypoint: string;
  readonly requirements: readonly string[];
}

/** A service whose state outlives a call: a store, a database, an index (R5, R6). */
export interface RelicDefinition extends ManifestBase {
  readonly kind: 'Relic';
  readonly implementation: RelicImplementation;
  /** Its owner: each session has its own, or all sessions of the namespace share one. */
  readonly scope: 'session' | 'shared';
  /** Whether its state survives a stop. */
  readonly persistent: boolean;
  /** Stopped after this time without a call. */
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

/** Steps that contain others, or that wait for a person. */
export const GROUP_TYPES = [
  'conditional',
  'switch',
  'parallel',
  'race',
  'for_each',
  'reduce',
  'loop',
  'try',
  'ask',
] as const;
export type GroupType = (typeof GROUP_TYPES)[number];
/** Steps that compute nothing: a value, and the end of the workflow. */
export const VALUE_TYPES = ['value', 'return'] as const;

export type StepType = ManifestActionType | 'shell' | GroupType | (typeof VALUE_TYPES)[number];

/** One step of a workflow (M6). Fields that its type does not use are null or empty. */
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
  /** Null: after the previous step; an empty list: immediately. */
  readonly dependsOn: readonly string[] | null;
  readonly timeoutMs: number | null;
  readonly onFailure: 'abort' | 'continue' | 'retry' | 'skip';
  /** Steps that undo or report the failure of this one. */
  readonly compensate: readonly WorkflowStep[];
  readonly retry: RetryPolicy | null;
  /** Maps an output name to a path in this step's result. */
  readonly outputMapping: Readonly<Record<string, string>>;
  /** For `conditional` (if true), `parallel`, `race`, `for_each`, `reduce` (for every item), `loop` and `try`. */
  readonly steps: readonly WorkflowStep[];
  /** For `conditional`, if false; for `switch`, if no case has the value. */
  readonly otherwise: readonly WorkflowStep[];
  /** For `for_each` and `reduce`: a reference to a list, or the list itself. */
  readonly items: Json;
  /** For `value` and `return`: the result. For `switch`: what is compared. For `reduce`: the first `$(acc)`. */
  readonly value?: Json;
  /** For `switch`. */
  readonly cases?: readonly { readonly value: string; readonly steps: readonly WorkflowStep[] }[];
  /** For `try`: after a failure, and in any case. */
  readonly rescue?: readonly WorkflowStep[];
  readonly always?: readonly WorkflowStep[];
  /** For `loop`: CEL; ends the loop if it is true after a round. */
  readonly until?: string;
  readonly maxRounds?: number;
  /** For `for_each` and `parallel`: maximum concurrency. */
  readonly concurrency: number | null;
}

/** A sequence or graph of steps, run by the same scheduler as a generation's actions (M6). */
export interface WorkflowDefinition extends ManifestBase {
  readonly kind: 'Workflow';
  readonly trigger: WorkflowTrigger;
  /** Names of the targets of its steps (X4). */
  readonly imports: AgentDefinition['imports'];
  /** JSON Schema of the inputs. */
  readonly inputs: JsonObject;
  /** Values of inputs that a start leaves out. */
  readonly defaults?: JsonObject;
  readonly steps: readonly WorkflowStep[];
  /** Maps an output name to the path that it is read from, such as `steps.s.field`. */
  readonly outputs: Readonly<Record<string, string>>;
  readonly failFast: boolean;
  readonly maxParallelSteps: number;
  /** Types of code that its steps may run (X4). Default: none. */
  readonly capabilities?: readonly Capability[];
}

/** A file beside a `SKILL.md`. */
export interface SkillFile {
  /** Relative to the folder of the skill; `pathIssue` accepts it. */
  readonly path: string;
  readonly text: string;
}

/** Instructions for a kind of task, which an agent loads when it needs them (C8). `summary` is its description in one line. */
export interface SkillDefinition extends ManifestBase {
  readonly kind: 'Skill';
  /** The Markdown text of its `SKILL.md`, at most `limits.skillTextChars`. */
  readonly text: string;
  /** In the order of their paths. */
  readonly files: readonly SkillFile[];
}

/** How much of the conversation the model sees again (M8). */
export interface MemoryPolicy {
  /** Turns that are kept verbatim; older ones are omitted or summarised. Null: `limits.historyTurns`. */
  readonly maxTurns: number | null;
  /** Turns after which older ones are summarised; null means never. */
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

/** The definitions that an agent or a workflow imports, by their imported name. */
export interface ImportedDefinitions {
  readonly tools: ReadonlyMap<string, ToolDefinition>;
  readonly relics: ReadonlyMap<string, RelicDefinition>;
  readonly workflows: ReadonlyMap<string, WorkflowDefinition>;
  /** Sub-agents: the part that callers need. */
  readonly agents: ReadonlyMap<string, ManifestBase>;
  /** Skills of an agent (C8). Absent: none. */
  readonly skills?: ReadonlyMap<string, SkillDefinition>;
  /** Every name in the catalogue by kind, to suggest similar names for an unknown one. */
  readonly knownNames: Readonly<Record<ImportedType, readonly string[]>>;
  /** Shapes of earlier results in this namespace, for targets whose manifest does not say what they return (L4). */
  readonly shapes?: LearnedShapes;
  /** What is bundled and may use the operator's secrets (X3): the importer itself, and tools by name. */
  readonly bundled?: { readonly subject: boolean; readonly tools: readonly string[] };
}

/** Everything that one run may look up: its agent and the imported definitions. */
export interface ResolvedAgent extends ImportedDefinitions {
  readonly agent: AgentDefinition;
  /** Instructions that came with the message of the run, of a caller with an API key. */
  readonly instructions?: string;
}

/** Everything that one run of a workflow may look up. */
export interface ResolvedWorkflow extends ImportedDefinitions {
  readonly workflow: WorkflowDefinition;
}

/** Whether the tool came with a message. */
export function isPassed({ implementation }: Pick<ToolDefinition, 'implementation'>): boolean {
  return implementation.type === 'client' && implementation.passed === true;
}
