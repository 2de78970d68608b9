/** The common interface of all action types. An executor knows how to run an action, not when. */
import type { ActionDeclaration, ActionOutcome } from '../domain/action.ts';
import type { EventData } from '../domain/event.ts';
import type { WithoutFacts } from '../domain/facts.ts';
import type { JsonObject } from '../domain/json.ts';
import type { Pacer } from '../domain/work.ts';
import type { AgentDefinition } from '../domain/manifests/agent.ts';
import type { RelicDefinition } from '../domain/manifests/relic.ts';
import type { RunnerNeeds } from '../domain/manifests/program.ts';
import type { SkillDefinition } from '../domain/manifests/skill.ts';
import type { ToolDefinition, ToolDescription } from '../domain/manifests/tool.ts';
import type { ActionWorkspace, FeedStore, VariableStore } from '../domain/ports/session-stores.ts';
import type { ChildBudget, ChildSessions } from '../domain/ports/children.ts';
import type { CodeTools } from '../domain/ports/code-tools.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { EdgeRelics } from '../domain/ports/edge-relics.ts';
import type { McpServers } from '../domain/ports/mcp.ts';
import type { HtmlReader, OutboundFetch } from '../domain/ports/outbound.ts';
import type { FactAnswer } from '../domain/ports/user-facts.ts';
import type { RunnerClient } from '../domain/ports/runner.ts';

/** One attempt of one action, with its references already resolved (P12). */
export interface ActionCall {
  readonly action: ActionDeclaration;
  /** `session/run/iteration/ordinal`: the identity for external systems (P6). */
  readonly runtimeKey: string;
  /** 1-based; also the fencing number (S7). */
  readonly attempt: number;
  /** Parameters after substitution; code and commands of python and shell are verbatim (P14). */
  readonly parameters: JsonObject;
  /** The schema of a code tool has parsed them. */
  readonly parsed?: true;
  /** Values passed to python, shell and docker as data (P14). */
  readonly inputs: JsonObject;
  /** The tool's definition for `type="tool"`, else null. */
  readonly tool: ToolDefinition | null;
  /** The relic's definition for `type="relic"`, else null or absent. */
  readonly relic?: RelicDefinition | null;
  readonly timeoutMs: number;
  /** Budget of a child (S12); null for actions that start none. */
  readonly budget: ChildBudget | null;
  /** The `traceparent` for what it calls (O1); absent: the run is not traced. */
  readonly trace?: string;
  /** In the attempts after an approved question: its state, and the values that the person gave (J8). */
  readonly answer?: { readonly state: JsonObject; readonly content: JsonObject };
}

/** A question that gets no answer (J8). */
export type WithdrawnQuestion = Pick<ActionCall, 'action' | 'runtimeKey' | 'tool'> & {
  /** The question's state. */
  readonly state: JsonObject;
};

/** The skills that an agent imports (C8). */
export interface LoadableSkills {
  readonly known: ReadonlyMap<string, SkillDefinition>;
  /** Journals that the model has been given a skill; `files`: the number of its files in the workspace. */
  loaded(name: string, files: number): void;
}

/** The tools of an agent whose prompt lists some of them without their parameters (L4). */
export interface DescribableTools {
  readonly known: ReadonlyMap<string, ToolDefinition>;
  describe(tool: ToolDefinition): ToolDescription;
  /** Its name and the summary of the short form. */
  list(tool: ToolDefinition): Pick<ToolDescription, 'name' | 'summary'>;
}

/** A change of the facts, as an action asks for it. */
export type MemoryChange =
  | { readonly type: 'remember'; readonly key: string; readonly value: string }
  | { readonly type: 'forget'; readonly key: string };

/** The facts about the user, for one attempt of one action (C10). Throws EngineError `memory_unavailable`. */
export interface UserMemory {
  change(change: MemoryChange, call: { readonly id: string; readonly until: number }): Promise<FactAnswer>;
  /** What the call with this runtime key has changed; null if it is unknown. */
  lookup(call: string): Promise<{ readonly changed: number } | null>;
}

/** The parts of the engine and the outside world that an executor may use. */
export interface ActionContext {
  /** Aborted at the timeout, on a cancel, and when the attempt is superseded. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** Runs evaluations whose work depends on input. */
  readonly pacer: Pacer;
  readonly session: string;
  /** Namespace that owns the session; null without keys. */
  readonly owner?: string | null;
  /** Live output for users; not journaled (J4). */
  progress(data: EventData['progress']): void;
  readonly variables: VariableStore;
  /** The internal actions that the agent's manifest allows. */
  readonly internalActions: AgentDefinition['internalActions'];
  /** Runner requirements of the agent's python and shell actions. */
  readonly runnerNeeds?: RunnerNeeds;
  /** Null if no runner is configured. */
  readonly runner: RunnerClient | null;
  /** Stores that need no runner (R6); null or absent if there are none. */
  readonly edgeRelics?: EdgeRelics | null;
  /** The project's code tools; null or absent if there are none. */
  readonly codeTools?: CodeTools | null;
  /** Servers of the Model Context Protocol (E5); null or absent if there are none. */
  readonly mcp?: McpServers | null;
  /** The session's files; null or absent: a call for a feed has none (C7). */
  readonly workspace?: ActionWorkspace | null;
  /** The attempt began on this host: if it is recovered, no host has ended. Default: false. */
  readonly isSameHost?: boolean;
  /** The agent's skills (C8); null or absent: it has none, or the call is for a feed. */
  readonly skills?: LoadableSkills | null;
  /** The agent's tools (L4); null or absent: the prompt shows all of them in full, or the call is for a feed. */
  readonly tools?: DescribableTools | null;
  /** The facts about the session's user (C10); null or absent: it has none, or the call is for a feed. */
  readonly memory?: UserMemory | null;
  /** Why it has none although its agent keeps some. */
  readonly withoutFacts?: WithoutFacts | null;
  /** Whether prompts may lack earlier turns, so that the model may read them (C10). Default: no. */
  readonly recalls?: boolean;
  readonly children: ChildSessions;
  /** The scope of an imported agent or workflow that only its importers see (M2). */
  scopeOf?(type: 'agent' | 'workflow', name: string): string | undefined;
  /** The session's feeds, for internal actions (I); null if they cannot be changed. */
  readonly feeds: FeedStore | null;
  readonly fetch: OutboundFetch;
  readonly readHtml: HtmlReader;
  /** One model call outside the conversation, for `type="llm"`. Returns the whole text. */
  callModel(request: {
    readonly prompt: string;
    readonly system: string | null;
    readonly model: string | null;
    /** Later messages after the prompt: the model's answers and the replies to them, alternating. */
    readonly further?: readonly { readonly role: 'assistant' | 'user'; readonly content: string }[];
    readonly onText: (delta: string) => void;
  }): Promise<string>;
}

/**
 * Runs one attempt. Returns failures as values; an exception counts as `{code: 'executor_fault', retryable: false}`.
 * Must settle soon after `signal` aborts, although the engine does not rely on it (S8).
 */
export interface Executor {
  execute(call: ActionCall, context: ActionContext): Promise<ActionOutcome>;
  /**
   * The outcome of an attempt that was running when the session's host was lost, by its runtime key and attempt (J2).
   * Waits for an attempt that is still running. Without this method, nothing is known about such attempts.
   *
   * @returns null if nothing is known; an exception counts as null
   */
  recover?(call: ActionCall, context: ActionContext): Promise<ActionOutcome | null>;
  /**
   * The action has ended while its question waited: it was denied, it expired, or the action was cancelled. Called at most
   * once per question, and not after a crash. What it throws is ignored.
   */
  withdraw?(question: WithdrawnQuestion, context: Pick<ActionContext, 'mcp'>): void | Promise<void>;
}
