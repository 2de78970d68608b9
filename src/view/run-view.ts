/**
 * A run as its events tell it: its text, its actions, what it waits for, and how it has ended. Every document, message and
 * picture of a run is made of this. Times are epoch milliseconds of the server.
 */
import type { ActionMode, ActionType } from '../domain/action.ts';
import type { EventData } from '../domain/event.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import type { RunStatus } from '../domain/session.ts';

export interface Failure {
  readonly code: string;
  readonly message: string;
}

/** A thought, bare text, or a response. */
export interface Block {
  readonly type: 'thought' | 'text' | 'response';
  /** Its id: the `seq` of the event that opened it. */
  readonly segment: number;
  readonly iteration: number;
  /** So far. */
  readonly text: string;
  readonly is_open: boolean;
  /** A crash has cut it off; the model writes again. */
  readonly is_cut: boolean;
  /** A later response has taken its place: values that it waited for are known now. */
  readonly is_replaced: boolean;
  readonly started_at: number;
  /** When the model has written its end; null while it writes. A response may stay open longer, for values. */
  readonly written_at: number | null;
}

/** One attempt to execute an action. */
export interface Attempt {
  /** 1-based. */
  readonly attempt: number;
  readonly started_at: number;
  /** Null while it runs. */
  readonly ended_at: number | null;
  readonly error: Failure | null;
  /** Milliseconds until the next attempt; null: there is none. */
  readonly retry_delay_ms: number | null;
}

/** A time in which an action waited for a person or a client. */
export interface Wait {
  readonly for: 'approval' | 'client tool';
  readonly from: number;
  /** Null while it waits. */
  readonly to: number | null;
}

export interface Action {
  /** As the model wrote it; unique within an iteration. */
  readonly id: string;
  readonly iteration: number;
  readonly name: string | null;
  readonly type: ActionType | null;
  readonly mode: ActionMode | null;
  readonly status: 'queued' | 'running' | 'completed' | 'failed' | 'skipped' | 'cancelled' | 'rejected';
  /** As executed, once it has started; before, as the model wrote them. */
  readonly parameters: JsonObject | null;
  readonly depends_on: readonly string[];
  readonly output: Json;
  readonly error: Failure | null;
  readonly attempts: number;
  /** What it printed while it ran, as far as this client was connected: its end, at least 65,536 characters. */
  readonly progress: string;
  /** As the model wrote them; null if they are not known. */
  readonly written: JsonObject | null;
  readonly is_in_thought: boolean;
  /** Its body was not strict JSON and was repaired. */
  readonly is_repaired: boolean;
  /** The outcome of an earlier action was reused. */
  readonly is_cached: boolean;
  /** Why it was skipped; null: it was not. */
  readonly skipped: EventData['action_skipped'] | null;
  readonly tries: readonly Attempt[];
  readonly waits: readonly Wait[];
  /** The session of the sub-agent, as far as this client was connected. */
  readonly child_session_id: string | null;
  readonly queued_at: number;
  readonly ended_at: number | null;
  /** The `seq` of the event with its written and its executed parameters, and of its end. */
  readonly seqs: { readonly written: number | null; readonly executed: number | null; readonly ended: number | null };
}

/** An iteration of the run. */
export interface Iteration {
  readonly iteration: number;
  readonly started_at: number;
  /** When the model stopped; null while it writes. */
  readonly written_at: number | null;
}

/** What is asked about an action, or of the client, and not answered. */
export interface Asked {
  readonly action_id: string;
  readonly name: string | null;
  readonly iteration: number;
  readonly seq: number;
  readonly asked_at: number;
}

/**
 * How much of a run its view has. An outline has no texts, and no parameters and outputs of actions, which may be large:
 * their events are named, and what they contain is not read. What waits for an answer is always whole.
 */
export type Extent = 'whole' | 'outline';

export interface RunView {
  readonly run_id: string;
  readonly status: RunStatus;
  /** Where its protocol text comes from. */
  readonly source: EventData['agent_started']['source'];
  /** The answer; null until the run has completed. */
  readonly response: string | null;
  /** The outputs of a workflow by name; null: none. */
  readonly outputs: JsonObject | null;
  /** The output of the model ended early in the latest generation: then its answer is not whole. */
  readonly is_cut: boolean;
  /** In the order of their opening. */
  readonly blocks: readonly Block[];
  /** The completed responses, in the order of their completion; one that replaces another takes its place. */
  readonly responses: readonly { readonly seq: number; readonly segment: number; readonly final: boolean | null }[];
  readonly actions: readonly Action[];
  /** Open requests for approval. */
  readonly approvals: readonly (EventData['approval_requested'] & Asked)[];
  /** Open calls of client tools. */
  readonly calls: readonly (EventData['client_tool_called'] & Asked)[];
  /** The plan of the latest generation. */
  readonly plan: EventData['plan_generated'] | null;
  readonly iterations: readonly Iteration[];
  /** The latest iteration of an event. */
  readonly iteration: number;
  readonly warnings: readonly EventData['warning'][];
  /** Of each model call, also those of actions and feeds. */
  readonly model_calls: readonly EventData['usage'][];
  /** Of the whole run; null until its end. */
  readonly usage: EventData['agent_completed']['usage'] | null;
  readonly error: Failure | null;
  /** Why it was cancelled, if that was told. */
  readonly reason: string | null;
  readonly started_at: number | null;
  readonly ended_at: number | null;
}

/** A run without events. */
export function emptyView(runId: string): RunView {
  return {
    run_id: runId,
    status: 'queued',
    source: 'model',
    response: null,
    outputs: null,
    is_cut: false,
    blocks: [],
    responses: [],
    actions: [],
    approvals: [],
    calls: [],
    plan: null,
    iterations: [],
    iteration: 0,
    warnings: [],
    model_calls: [],
    usage: null,
    error: null,
    reason: null,
    started_at: null,
    ended_at: null,
  };
}

/** The text to show while a run answers: its responses and its bare text, without replaced and blank ones. */
export function visibleText({ blocks }: Pick<RunView, 'blocks'>): string {
  return blocks
    .filter(({ type, is_replaced, text }) => type !== 'thought' && !is_replaced && text.trim() !== '')
    .map(({ text }) => text)
    .join('\n\n');
}

/** Whether nothing but background actions may follow. */
export function hasEnded({ status }: Pick<RunView, 'status'>): boolean {
  return status === 'completed' || status === 'failed' || status === 'cancelled';
}

/** Whether nothing more of the action will follow. */
export function isSettled({ status }: Pick<Action, 'status'>): boolean {
  return status !== 'queued' && status !== 'running';
}

/** Whether an action did not do what it should. */
export function isFailure({ status }: Pick<Action, 'status'>): boolean {
  return status === 'failed' || status === 'rejected';
}

/** Tokens of model calls together, and US dollars as far as prices are known. */
export interface Tokens {
  readonly prompt: number;
  readonly completion: number;
  readonly cached: number;
  readonly cost: number;
}

export function tokensOf(calls: RunView['model_calls']): Tokens {
  let [prompt, completion, cached, cost] = [0, 0, 0, 0];
  for (const call of calls) {
    prompt += call.prompt_tokens;
    completion += call.completion_tokens;
    cached += call.cached_tokens;
    cost += call.cost ?? 0;
  }
  return { prompt, completion, cached, cost };
}
