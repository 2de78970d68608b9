/**
 * The inputs of a run, in the form of the input queue and in the journaled form (J9).
 *
 * There is one vocabulary. An input that is passed to the scheduler unchanged has the scheduler's type and fields. The
 * engine adds only what the scheduler does not know: text, live output, and outcomes with their values.
 */
import type { ActionError, ActionKey, ActionOutcome, DeclaredAction } from '../../domain/action.ts';
import type { MessageContent } from '../../domain/content.ts';
import type { RunError } from '../../domain/errors.ts';
import type { EventData } from '../../domain/event.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { FinishReason, ModelDelta, ModelRequest, Usage } from '../../domain/ports/model.ts';
import type { PolicyVerdict } from '../../domain/policy.ts';
import type { ProtocolEvent } from '../../domain/protocol-event.ts';
import type { Spent } from '../../domain/spent.ts';
import type { NativeCall } from '../../protocol/native/tool-calls.ts';
import type { SchedulerInput } from '../../scheduler/types.ts';
import type { LookupResult } from '../actions/outcome-cache.ts';

/** Who called a model, if it was not the generation. */
export type UsageOf = { readonly action: ActionKey } | { readonly feed: true };

export type ToolCallDelta = Extract<ModelDelta, { type: 'tool_call' }>;
export type ConditionResult = Scheduled<'condition_evaluated'>['result'];

/** An action that a workflow has declared. `answers`: its result is the answer of the run. */
export interface DeclaredPiece {
  readonly declared: DeclaredAction;
  readonly answers?: true;
}

/** A verbatim piece of a generation: text, a part of a native call, or a declared action. */
export type StreamPiece = { readonly text: string } | { readonly delta: ToolCallDelta } | DeclaredPiece;

/** An input of the scheduler, without the time and random number that are added when the run takes it. */
type Scheduled<Type extends SchedulerInput['type']> =
  Extract<SchedulerInput, { type: Type }> extends infer Input
    ? Input extends unknown
      ? Omit<Input, 'at' | 'random'>
      : never
    : never;

/** The end of a generation. `error`: why it ended early. */
interface GenerationEnded {
  readonly type: 'generation_ended';
  readonly finish: FinishReason;
  readonly error: RunError | null;
}

/** An input in the queue. */
export type RunInput =
  | Scheduled<'timer_fired' | 'cancel_requested' | 'generation_idle'>
  /**
   * `more`: it came together with other answers, and the run does not wait before all of them are taken.
   * `content`: the values for a question that is approved; in a record, they are in the event. `onDecided`: called with
   * whether this decision counts: when it is durable, or immediately if another one was first.
   */
  | (Scheduled<'approval_resolved'> & {
      readonly more?: true;
      readonly content?: JsonObject;
      readonly onDecided?: (counts: boolean) => void;
    })
  /** The call of a client tool is valid; `parameters` are what the client gets (C3). */
  | (Scheduled<'client_called'> & { readonly parameters: JsonObject })
  /** The client's result. `sha256`: of its canonical JSON. `more`: as above. `onDecided`: the same, but not yet durable. */
  | {
      readonly type: 'client_answered';
      readonly key: ActionKey;
      readonly outcome: ActionOutcome;
      readonly sha256: string;
      readonly more?: true;
      readonly onDecided?: (counts: boolean) => void;
    }
  /**
   * A message for the next generation (C5). `store`: writes what the session needs of it, with the event. `onReceived`:
   * called when it is durable; `onLate`: called instead if the run has ended. Absent in a record, as is the content.
   */
  | {
      readonly type: 'message_received';
      readonly content?: MessageContent;
      readonly store?: (seq: number, number: number, iteration: number) => void;
      readonly onReceived?: () => void;
      readonly onLate?: () => void;
    }
  /** Model output. `pieces`: the pieces that the events were read from. */
  | { readonly type: 'protocol'; readonly pieces: readonly StreamPiece[]; readonly events: readonly ProtocolEvent[] }
  | { readonly type: 'reasoning'; readonly text: string }
  /** `of`: the action or feed whose model call it was; absent: the generation. */
  | { readonly type: 'usage'; readonly usage: Usage; readonly of?: UsageOf }
  | (GenerationEnded & {
      /** Text without an event before its end, and the events at the end of the text. */
      readonly pieces: readonly StreamPiece[];
      readonly events: readonly ProtocolEvent[];
      /** The model's verbatim text (L5). */
      readonly text: string;
      /** Its native calls, in the order in which they began (P17). */
      readonly calls: readonly NativeCall[];
    })
  | {
      readonly type: 'attempt_ended';
      readonly key: ActionKey;
      readonly attempt: number;
      readonly outcome: ActionOutcome;
    }
  | { readonly type: 'recalled'; readonly key: ActionKey; readonly found: LookupResult }
  /**
   * What the policies say of a call that was completed, checked and parsed before. `verdict`: its event; null if there is none.
   * `call`: the final call, if it cannot be computed again; stored with the event. `shown`: what the event shows of the call.
   * Both are absent in a record.
   */
  | (Scheduled<'policy_judged'> & {
      readonly verdict: PolicyVerdict | null;
      readonly call?: JsonObject;
      readonly shown?: Pick<EventData['policy_applied'], 'parameters' | 'parameters_cut'>;
    })
  /** Live output of an attempt; not recorded (J4). */
  | {
      readonly type: 'progress';
      readonly key: ActionKey;
      readonly attempt: number;
      readonly data: EventData['progress'];
    }
  /** A piece of the model's text, for readers that requested tokens; not recorded. */
  | { readonly type: 'token'; readonly text: string }
  /** The request that is being sent to the model, for debugging; not recorded. */
  | { readonly type: 'prompt'; readonly request: ModelRequest }
  /** A change of a feed, for readers; not recorded (F2). */
  | { readonly type: 'feed'; readonly data: EventData['context_feed_updated'] }
  /** Time to write unsaved inputs (J6). */
  | { readonly type: 'save' };

/**
 * An input in the journal. A run that gets the same inputs in the same order reaches the same state; this is how it
 * continues after a crash. The output of a completed action is not repeated here, because it is in its event.
 *
 * `at`: epoch milliseconds. `random`: the random number that was drawn when the run took the input.
 */
export type RecordedInput = { readonly at: number } & (
  | Scheduled<
      'run_started' | 'condition_evaluated' | 'recalled' | 'cancel_requested' | 'client_called' | 'generation_idle'
    >
  | (Scheduled<'timer_fired'> & { readonly random: number })
  | (Scheduled<'approval_resolved'> & { readonly more?: true })
  | (Scheduled<'policy_judged'> & { readonly verdict: PolicyVerdict | null })
  /** Its content is in its event. */
  | { readonly type: 'message_received' }
  /** Why an approval could not be requested for an action (J8). */
  | (Scheduled<'approval_asked'> & { readonly error: ActionError })
  | Extract<RunInput, { type: 'reasoning' | 'usage' }>
  /** A client's result; `error` is null for a success. */
  | {
      readonly type: 'client_answered';
      readonly key: ActionKey;
      readonly error: ActionError | null;
      readonly more?: true;
    }
  /** Verbatim text of the generation. */
  | { readonly type: 'text'; readonly text: string }
  | ({ readonly type: 'declared' } & DeclaredPiece)
  /** Number of further characters of the posted text, which is already in the journal. */
  | { readonly type: 'posted_text'; readonly chars: number }
  | { readonly type: 'tool_call'; readonly delta: ToolCallDelta }
  | GenerationEnded
  /** `error` is null for a success. `question`: it has ended with a question, which is in the event of its request. */
  | {
      readonly type: 'attempt_ended';
      readonly key: ActionKey;
      readonly attempt: number;
      readonly error: ActionError | null;
      readonly spent?: Spent;
      readonly random: number;
      readonly question?: true;
    }
);
