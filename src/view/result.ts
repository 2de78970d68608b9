/**
 * A run as one JSON document (H7), folded from its events: the journal is the only source. Large parts (outputs and
 * responses) stay in the journal until they are sent.
 */
import type { ActionMode, ActionType } from '../domain/action.ts';
import type { EventData, SessionEvent } from '../domain/event.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import type { RunStatus } from '../domain/session.ts';
import { OUTPUTS } from '../domain/workflow-actions.ts';
import { RunAnswer } from './answer.ts';
import { foldOutline } from './reduce.ts';
import { emptyView, isFailure, isSettled } from './run-view.ts';
import type { Action, RunView } from './run-view.ts';

type ActionStatusJson = 'queued' | 'running' | 'completed' | 'failed' | 'skipped' | 'cancelled' | 'rejected';

/** Why an action has no output. */
type ActionErrorJson =
  | EventData['action_failed']['error']
  | { readonly code: 'skipped'; readonly reason: string; readonly because: string | null }
  | { readonly code: string; readonly message: string };

/** Usage of the model calls of a run. */
interface UsageJson {
  prompt_tokens: number;
  completion_tokens: number;
  cached_tokens: number;
  model_calls: number;
  /** Set if an endpoint did not report the usage of a call. */
  estimated?: true;
  /** US dollars, for calls with a known price. */
  cost?: number;
}

interface ActionJson {
  id: string;
  name: string | null;
  /** Null for a rejected action without a type. */
  type: ActionType | null;
  mode: ActionMode | null;
  status: ActionStatusJson;
  /** As executed; null if it was not dispatched. For a rejected action: as declared, null if they could not be read. */
  parameters: JsonObject | null;
  /** Set if they were cut. */
  parameters_cut?: true;
  output: Json;
  error: ActionErrorJson | null;
  attempts: number;
  queued_at: number | null;
  started_at: number | null;
  ended_at: number | null;
}

export interface RunResult {
  readonly session_id: string;
  readonly run_id: string;
  readonly status: RunStatus;
  readonly response: string;
  readonly responses: readonly { readonly content: string; readonly final: boolean | null }[];
  readonly actions: readonly Readonly<ActionJson>[];
  /** The outputs of a workflow by name; null until it has them. Absent for other runs. */
  readonly outputs?: JsonObject | null;
  /** Number of failed and rejected actions. */
  readonly failed_actions: number;
  /** Open approval requests; set only while the run waits for them (J8). */
  readonly approvals?: readonly {
    readonly approval_id: string;
    readonly action_id: string;
    readonly name: string | null;
    readonly sha256: string;
    readonly bytes: number;
    /** Message of the policy that asks; absent: none does, or it has no message. */
    readonly reason?: string;
    /** What the target of the action asks; absent: the action needs an approval to start. */
    readonly question?: NonNullable<EventData['approval_requested']['question']>;
  }[];
  /** Open calls of client tools, the oldest ones; absent if there are none. The run may run or have ended (C3). */
  readonly pending?: readonly {
    readonly call_id: string;
    readonly name: string;
    readonly parameters: JsonObject;
  }[];
  /** Number of further open calls. */
  readonly pending_more?: number;
  readonly warnings: readonly { readonly code: string; readonly message: string }[];
  readonly usage: Readonly<UsageJson>;
  readonly iterations: number;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly started_at: number;
  readonly ended_at: number | null;
}

/** The document with event numbers in place of the parts that stay in the journal. */
export type RunOutline = Omit<
  RunResult,
  | 'session_id'
  | 'run_id'
  | 'status'
  | 'responses'
  | 'actions'
  | 'outputs'
  | 'pending'
  | 'pending_more'
  | 'started_at'
  | 'ended_at'
> & {
  /** The event with the outputs of a workflow; null if there is none. */
  readonly outputsSeq: number | null;
  /** The events of the open calls. */
  readonly pendingSeqs: readonly number[];
  readonly responses: readonly { readonly seq: number; readonly final: boolean | null }[];
  readonly actions: readonly {
    readonly action: Readonly<ActionOutline>;
    readonly outputSeq: number | null;
    /** The event with the parameters; null if there are none. */
    readonly parametersSeq: number | null;
  }[];
};

/** Folds a run's events, oldest first. Also works for an unfinished run. */
export class RunFold {
  readonly #status: RunStatus;
  readonly #answer = new RunAnswer();
  #view = emptyView('');

  /** @param status of the run now */
  constructor(status: RunStatus) {
    this.#status = status;
  }

  add(event: SessionEvent): void {
    this.#view = foldOutline(this.#view, event);
    this.#answer.add(event);
  }

  /** Whether every action has ended: nothing more follows in an ended run. */
  get settled(): boolean {
    return this.#view.actions.every(isSettled);
  }

  /** Number of actions, including those that the runtime added to a workflow. */
  get actionCount(): number {
    return this.#view.actions.length;
  }

  get outline(): RunOutline {
    const { responses, actions, approvals, calls, warnings, model_calls: modelCalls, iteration, error } = this.#view;
    const outputs = actions.findLast(({ id, name, status }) => {
      return id === OUTPUTS && name === null && status === 'completed';
    });
    return {
      response: this.#answer.text,
      responses: responses.map(({ seq, final }) => ({ seq, final })),
      actions: actions.filter((action) => isFailure(action) || action.name !== null).map(outlined),
      outputsSeq: outputs?.seqs.ended ?? null,
      pendingSeqs: calls.map(({ seq }) => seq),
      failed_actions: actions.filter(isFailure).length,
      ...(this.#status === 'waiting' && approvals.length > 0 ? { approvals: approvals.map(requestOf) } : {}),
      warnings: warnings.map(({ code, message }) => ({ code, message })),
      usage: usageOf(modelCalls),
      iterations: iteration,
      error,
    };
  }
}

type OutlinedAction = RunOutline['actions'][number];

type ActionOutline = Omit<ActionJson, 'output' | 'parameters' | 'parameters_cut'>;

function outlined(row: Action): OutlinedAction {
  const { id, name, type, mode, status, attempts, queued_at, ended_at, tries, seqs, error, skipped } = row;
  const started_at = tries[0]?.started_at ?? null;
  const why = skipped === null ? error : { code: 'skipped' as const, ...skipped };
  return {
    action: { id, name, type, mode, status, error: why, attempts, queued_at, started_at, ended_at },
    outputSeq: status === 'completed' ? seqs.ended : null,
    parametersSeq: seqs.executed,
  };
}

function requestOf(asked: RunView['approvals'][number]): NonNullable<RunResult['approvals']>[number] {
  const { approval_id, action_id, name, sha256, bytes, reason, question } = asked;
  return {
    approval_id,
    action_id,
    name,
    sha256,
    bytes,
    ...(reason === undefined ? {} : { reason }),
    ...(question === undefined ? {} : { question }),
  };
}

/** The usage of model calls together. */
function usageOf(calls: RunView['model_calls']): UsageJson {
  const usage: UsageJson = { prompt_tokens: 0, completion_tokens: 0, cached_tokens: 0, model_calls: calls.length };
  for (const { prompt_tokens, completion_tokens, cached_tokens, estimated, cost } of calls) {
    usage.prompt_tokens += prompt_tokens;
    usage.completion_tokens += completion_tokens;
    usage.cached_tokens += cached_tokens;
    if (estimated === true) usage.estimated = true;
    if (cost !== undefined) usage.cost = Math.round(((usage.cost ?? 0) + cost) * 1e9) / 1e9;
  }
  return usage;
}
