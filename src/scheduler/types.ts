/**
 * The scheduler's inputs and commands. Everything is plain JSON, so a recorded sequence of inputs can be stored and
 * replayed (S1, J9).
 */
import type {
  ActionDeclaration,
  ActionError,
  ActionKey,
  ActionRejection,
  ActionPolicy,
  ActionType,
  RejectionCode,
} from '../domain/action.ts';
import type { Finality } from '../domain/protocol-event.ts';
import type { RunError } from '../domain/errors.ts';
import type { ChildBudget } from '../domain/ports/children.ts';
import type { FinishReason } from '../domain/ports/model.ts';
import type { Spent } from '../domain/spent.ts';

/** The limits of a run, fixed at its start. */
export interface RunPolicy {
  /** `text`: one posted protocol text without a model; the run ends when its work has settled (H7). */
  readonly source: 'model' | 'text';
  readonly maxParallelActions: number;
  /** Slots per action type, in addition to `maxParallelActions`. An absent type has no limit of its own (S5). */
  readonly maxParallelByType?: Readonly<Partial<Record<ActionType, number>>>;
  /** 0 means no cap except the budget (S11). */
  readonly maxIterations: number;
  readonly maxActions: number;
  readonly seconds: number;
  readonly modelCalls: number;
  readonly tokens: number | null;
  /** US dollars; null or absent = no budget (S12). */
  readonly cost?: number | null;
  /** Sessions that its actions may start, including nested ones; absent means no limit (M7). */
  readonly maxChildren?: number;
  readonly failFast: boolean;
  readonly responseDefault: 'auto' | 'final' | 'continue';
  readonly onFailedFinal: 'continue' | 'end';
}

/** Every input has its time, in epoch milliseconds. */
export type SchedulerInput = { readonly at: number } & (
  | { readonly type: 'run_started'; readonly policy: RunPolicy }
  | { readonly type: 'action_declared'; readonly action: ActionDeclaration; readonly policy: ActionPolicy }
  /** The parser rejected an action; it is settled as rejected. */
  | { readonly type: 'action_refused'; readonly rejection: ActionRejection }
  /**
   * A response block has closed. `refers`: producers of its references, as returned by `lookup`. `hasReferences`: it
   * refers to actions, variables or feeds, so its values are checked before it ends the run (P10).
   */
  | {
      readonly type: 'response_closed';
      readonly final: Finality;
      readonly refers: readonly ActionKey[];
      readonly hasReferences?: boolean;
    }
  /** The stream has ended. `answered`: bare text counts as a final response (P11). */
  | {
      readonly type: 'generation_ended';
      readonly finish: FinishReason;
      readonly answered: boolean;
      readonly error: RunError | null;
    }
  /**
   * Answers `check_answer`. `missing`: a reference has no value to show. `pending`: a response was closed while one of
   * its values waited for an approval or a client (P10, P13).
   */
  | { readonly type: 'answer_checked'; readonly missing: boolean; readonly pending: boolean }
  /** The call was shown to the client, whose result is reported as that of the attempt (C3). */
  | { readonly type: 'client_called'; readonly key: ActionKey }
  /** Nothing more arrives for now: the run waits if only people and clients can advance it (J8). */
  | { readonly type: 'generation_idle' }
  | {
      readonly type: 'condition_evaluated';
      readonly key: ActionKey;
      readonly result:
        | { readonly ok: true; readonly value: boolean }
        | { readonly ok: false; readonly message: string };
    }
  /** The answer to `judge`: what the policies and the manifest say together, or why the action must not run (C9). */
  | {
      readonly type: 'policy_judged';
      readonly key: ActionKey;
      readonly result: 'start' | 'ask' | { readonly error: ActionError };
    }
  /** The answer to `lookup`: an earlier outcome can be reused, the action must not run, or neither (P6). */
  | {
      readonly type: 'recalled';
      readonly key: ActionKey;
      readonly found: 'outcome' | 'nothing' | { readonly error: ActionError };
    }
  /** `spent`: the part of its reservation that a child used (S12). */
  | {
      readonly type: 'attempt_succeeded';
      readonly key: ActionKey;
      readonly attempt: number;
      readonly spent?: Spent;
    }
  | {
      readonly type: 'attempt_failed';
      readonly key: ActionKey;
      readonly attempt: number;
      readonly error: ActionError;
      readonly spent?: Spent;
      /** Uniform in [0, 1): the jitter of the backoff (S7). */
      readonly random: number;
      /** The target asks a person, and the next attempt has the answer (J8). */
      readonly question?: true;
    }
  /** `random`: as above, for a timeout that is followed by a retry; without it the full backoff applies. */
  | { readonly type: 'timer_fired'; readonly timer: TimerId; readonly random?: number }
  /** Answers `ask_approval`: the question is open, or an error because it could not be asked (J8). */
  | { readonly type: 'approval_asked'; readonly key: ActionKey; readonly error: ActionError | null }
  | {
      readonly type: 'approval_resolved';
      readonly key: ActionKey;
      readonly approved: boolean;
      readonly note: string | null;
    }
  /** `cost`: US dollars; absent if the model's price is unknown. */
  | { readonly type: 'usage_recorded'; readonly tokens: number; readonly cost?: number }
  /** `only: 'waiting'`: what waits for people and clients; other actions continue. */
  | { readonly type: 'cancel_requested'; readonly reason: string; readonly only?: 'waiting' }
);

/** One kind of input. */
export type Input<Type extends SchedulerInput['type']> = Extract<SchedulerInput, { type: Type }>;

/** `timeout:KEY#ATTEMPT`, `retry:KEY#ATTEMPT`, `approval:KEY`, `client:KEY`, `budget`. Opaque to the engine. */
export type TimerId = string;

export type SchedulerCommand =
  /** The action was accepted. `dependsOn` contains the resolved explicit and implicit dependencies. */
  | { readonly type: 'queue'; readonly key: ActionKey; readonly dependsOn: readonly ActionKey[] }
  /** Evaluate the action's `when` now; answer with `condition_evaluated`. */
  | { readonly type: 'evaluate'; readonly key: ActionKey }
  /** Evaluate the policies for the action's resolved parameters; answer with `policy_judged` (C9). */
  | { readonly type: 'judge'; readonly key: ActionKey }
  /** Look up an earlier outcome for the action, now or when an equal one has settled; answer with `recalled` (P6). */
  | { readonly type: 'lookup'; readonly key: ActionKey }
  /** Check the action's call and show it to the client; answer with `client_called` or `attempt_failed` (C3). */
  | { readonly type: 'call_client'; readonly key: ActionKey; readonly attempt: number; readonly timeoutMs: number }
  /** `budget`: what the child may spend (S12); null for actions that start no child. */
  | {
      readonly type: 'start';
      readonly key: ActionKey;
      readonly attempt: number;
      readonly timeoutMs: number;
      readonly budget: ChildBudget | null;
    }
  /** Abort the attempt's signal and forget it. A late result is recorded and ignored (S7). */
  | { readonly type: 'abort'; readonly key: ActionKey; readonly attempt: number; readonly reason: string }
  | {
      readonly type: 'retry';
      readonly key: ActionKey;
      /** The attempt that failed. */
      readonly attempt: number;
      readonly delayMs: number;
      readonly error: ActionError;
    }
  /**
   * Ask a person to approve the action with its current parameters, or to answer the question that `attempt` has ended
   * with; 0: it has not started (J8). Answer with `approval_asked`.
   */
  | { readonly type: 'ask_approval'; readonly key: ActionKey; readonly attempt: number }
  | ({ readonly type: 'settle'; readonly key: ActionKey; readonly attempt: number } & Settlement)
  | { readonly type: 'set_timer'; readonly timer: TimerId; readonly delayMs: number }
  | { readonly type: 'clear_timer'; readonly timer: TimerId }
  | { readonly type: 'warn'; readonly code: string; readonly message: string; readonly key: ActionKey | null }
  /** Stop reading the model's stream. */
  | { readonly type: 'stop_generation' }
  | { readonly type: 'start_iteration'; readonly iteration: number; readonly last: boolean }
  /** At the end of a generation that declared an action; the engine builds the plan report from the state. */
  | { readonly type: 'report_plan'; readonly iteration: number }
  /** Check the values in the generation's responses, which would end the run; answer with `answer_checked`. */
  | { readonly type: 'check_answer'; readonly iteration: number }
  /** Write the responses with pending values again: all values have settled (P13). */
  | { readonly type: 'complete_responses' }
  | { readonly type: 'complete_iteration'; readonly iteration: number; readonly final: boolean }
  | { readonly type: 'budget_exceeded'; readonly budget: string; readonly limit: number; readonly used: number }
  | {
      readonly type: 'end_run';
      readonly status: 'completed' | 'failed' | 'cancelled' | 'waiting';
      readonly error: RunError | null;
    }
  /** After `end_run`: every fire_and_forget action has also settled; no more commands follow. */
  | { readonly type: 'drained' };

/** How an action ended (S10). */
export type Settlement =
  | { readonly status: 'completed' }
  | { readonly status: 'failed'; readonly error: ActionError }
  | { readonly status: 'skipped'; readonly reason: 'condition' | 'dependency'; readonly because: string | null }
  | { readonly status: 'cancelled'; readonly reason: string }
  | { readonly status: 'rejected'; readonly code: RejectionCode; readonly message: string };
