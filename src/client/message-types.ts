/** A run as a message: the state of the fold in message.ts. */
import type { ActionMode, ActionType } from '../domain/action.ts';
import type { EventData } from '../domain/event.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import type { RunStatus } from '../domain/session.ts';

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
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly attempts: number;
  /** What it printed while it ran, as far as this client was connected. */
  readonly progress: string;
}

export interface Message {
  readonly run_id: string;
  readonly status: RunStatus;
  /** The answer; null until the run has completed. */
  readonly response: string | null;
  /** The output of the model ended early in the latest generation: then its answer is not whole. */
  readonly is_cut: boolean;
  /** In the order of their opening. */
  readonly blocks: readonly Block[];
  readonly actions: readonly Action[];
  /** Open requests for approval. */
  readonly approvals: readonly (EventData['approval_requested'] & {
    readonly action_id: string;
    readonly name: string | null;
  })[];
  /** Open calls of client tools. */
  readonly calls: readonly EventData['client_tool_called'][];
  /** The plan of the latest generation. */
  readonly plan: EventData['plan_generated'] | null;
  readonly warnings: readonly EventData['warning'][];
  /** Of the whole run; null until its end. */
  readonly usage: EventData['agent_completed']['usage'] | null;
  readonly error: { readonly code: string; readonly message: string } | null;
}
