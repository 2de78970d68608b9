/** Agents after validation. */
import type { InternalActionRules } from '../internal-actions.ts';
import type { ActionType, Capability } from '../action-types.ts';
import type { FactsPolicy } from '../facts.ts';
import type { JsonObject } from '../json.ts';
import type { PolicyRule } from '../policy.ts';
import type { PromptChanges } from '../prompt-parts.ts';
import type { ManifestBase } from './base.ts';
import type { FeedDefinition } from './feed.ts';
import type { McpServerDefinition } from './mcp-server.ts';
import type { ModelChoice, ModelPrice, RoutingPolicy } from './model.ts';
import type { RunnerNeeds } from './program.ts';

export interface AgentDefinition extends ManifestBase {
  readonly kind: 'Agent';
  readonly persona: { readonly agent: string; readonly user: string; readonly examples: readonly string[] };
  /** Parts of the system prompt that it replaces or leaves out (L4); absent: none. */
  readonly prompt?: PromptChanges;
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
  /** Servers whose tools it uses (E5); absent: none. */
  readonly mcpServers?: readonly McpServerDefinition[];
  readonly capabilities: readonly Capability[];
  /** Runner requirements of its python and shell actions. */
  readonly runner?: RunnerNeeds;
  /** False: its python, shell and docker actions see no workspace (C7). Default: they do. */
  readonly workspace?: false;
  /** Patterns of text that does not leave its sessions (C9); absent: none. */
  readonly redact?: readonly string[];
  readonly internalActions: InternalActionRules;
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
  /** What decides about its actions (C9); absent: nothing does. */
  readonly policies?: readonly PolicyRule[];
  readonly variables: Readonly<Record<string, string>>;
  /** Names of the secrets that its tools may use, `TOOL_…` (X3). */
  readonly secrets: readonly string[];
}

/** How much of the conversation the model sees again (M8). */
export interface MemoryPolicy {
  /** Turns that are kept verbatim; older ones are omitted or summarised. Null: `limits.historyTurns`. */
  readonly maxTurns: number | null;
  /** Turns after which older ones are summarised; null means never. */
  readonly summarizeAfter: number | null;
  /** How they are summarised (C10). Absent: by lines, also in definitions that are older than summaries. */
  readonly summary?: SummaryPolicy;
  /** Facts about the user that its sessions share (C10). Absent: it keeps none. */
  readonly facts?: FactsPolicy;
}

/** Whether prompts may lack turns that a session still has. */
export function limitsTurns({ maxTurns, summarizeAfter }: MemoryPolicy): boolean {
  return maxTurns !== null || summarizeAfter !== null;
}

/** `memory.summary` of an agent's manifest. */
export interface SummaryPolicy {
  /** `model`: the agent's model writes a text after an answer; `lines`: one line for each message and answer. */
  readonly by: 'model' | 'lines';
  /** Budget of the text, in tokens. */
  readonly tokens: number;
  /** The request for the text, with placeholders; null: the usual one. */
  readonly template: string | null;
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
  /** Estimated tokens of tools in the prompt; absent: `limits.promptToolTokens`. */
  readonly toolTokens?: number;
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
