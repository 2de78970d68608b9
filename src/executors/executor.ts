/** The one interface of all action types. An executor knows how to do a thing, never when. */
import type { ActionDeclaration, ActionOutcome } from '../domain/action.ts';
import type { EventData } from '../domain/event.ts';
import type { JsonObject } from '../domain/json.ts';
import type { Pacer } from '../domain/work.ts';
import type { AgentDefinition, RelicDefinition, RunnerNeeds, ToolDefinition } from '../domain/manifest.ts';
import type {
  ChildBudget,
  ChildSessions,
  Clock,
  EdgeRelics,
  FeedStore,
  HtmlReader,
  OutboundFetch,
  RunnerClient,
  VariableStore,
} from '../domain/ports.ts';

/** One attempt of one action, with its references already resolved (P12). */
export interface ActionCall {
  readonly action: ActionDeclaration;
  /** `session/run/iteration/ordinal`: the identity that outside systems see (P6). */
  readonly runtimeKey: string;
  /** From 1; also the fencing number (S7). */
  readonly attempt: number;
  /** Parameters after substitution; for python and shell, code and command are verbatim (P14). */
  readonly parameters: JsonObject;
  /** Values that reach python, shell and docker as data (P14). */
  readonly inputs: JsonObject;
  /** The tool's definition for `type="tool"`, else null. */
  readonly tool: ToolDefinition | null;
  /** The relic's definition for `type="relic"`, else null or absent. */
  readonly relic?: RelicDefinition | null;
  readonly timeoutMs: number;
  /** What a child may spend (S12); null for actions that start none. */
  readonly budget: ChildBudget | null;
}

/** What an executor may use of the engine and the outside world. */
export interface ActionContext {
  /** Aborted at the timeout, at a cancel and when the attempt was superseded. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** For evaluations whose work depends on input. */
  readonly pacer: Pacer;
  readonly session: string;
  /** Name of the API key that the session belongs to; null without keys. */
  readonly owner?: string | null;
  /** Live output for people; not journaled (J4). */
  progress(data: EventData['progress']): void;
  readonly variables: VariableStore;
  /** Which internal actions the agent's manifest allows. */
  readonly internalActions: AgentDefinition['internalActions'];
  /** What the agent's python and shell ask of the place that they run at. */
  readonly runnerNeeds?: RunnerNeeds;
  /** Null when no runner is configured. */
  readonly runner: RunnerClient | null;
  /** Stores that need no runner (R6); null or absent where there are none. */
  readonly edgeRelics?: EdgeRelics | null;
  readonly children: ChildSessions;
  /** The session's feeds, for internal actions (I); null where there are none to change. */
  readonly feeds: FeedStore | null;
  readonly fetch: OutboundFetch;
  readonly readHtml: HtmlReader;
  /** One model call outside the conversation, for `type="llm"`. Returns the whole text. */
  callModel(request: {
    readonly prompt: string;
    readonly system: string | null;
    readonly model: string | null;
    /** What was said before, behind the prompt: the model's answers and the replies to them, in turns. */
    readonly further?: readonly { readonly role: 'assistant' | 'user'; readonly content: string }[];
    readonly onText: (delta: string) => void;
  }): Promise<string>;
}

/**
 * Does one attempt. Returns failures as values; what it throws counts as
 * `{code: 'executor_fault', retryable: false}`. Must settle soon after `signal` aborts, though the
 * engine does not rely on it (S8).
 */
export interface Executor {
  execute(call: ActionCall, context: ActionContext): Promise<ActionOutcome>;
  /**
   * What became of an attempt that was under way when the session's host vanished, by its runtime key
   * and attempt (J2). Waits for the end of one that is still at work. Without it, nothing is ever known.
   *
   * @returns null when nothing is known of it; what it throws counts as that, too
   */
  recover?(call: ActionCall, context: ActionContext): Promise<ActionOutcome | null>;
}
