/**
 * What happens to a run: as it arrives in the inbox, and as the journal keeps it (J9).
 *
 * There is one vocabulary. An input that the scheduler takes as it is has the scheduler's type and fields; the
 * engine adds only what the scheduler does not know: text, live output, outcomes with their values.
 */
import type { ActionError, ActionKey, ActionOutcome } from '../../domain/action.ts';
import type { EventData } from '../../domain/event.ts';
import type { FinishReason, ModelDelta, Usage } from '../../domain/ports.ts';
import type { ProtocolEvent } from '../../domain/protocol-event.ts';
import type { Spent } from '../../domain/spent.ts';
import type { NativeCall } from '../../protocol/native/tool-calls.ts';
import type { SchedulerInput } from '../../scheduler/types.ts';
import type { Recalled } from '../actions/outcome-cache.ts';

export type ToolCallDelta = Extract<ModelDelta, { type: 'tool_call' }>;
export type ConditionResult = Scheduled<'condition_evaluated'>['result'];

/** What the generation said, as it came: text to the letter, or a piece of a native call. */
export type StreamPiece = { readonly text: string } | { readonly delta: ToolCallDelta };

/** An input of the scheduler, without the time and the random number that it gets when the run takes it. */
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
  readonly error: { readonly code: string; readonly message: string } | null;
}

/** An input in the inbox. */
export type RunInput =
  | Scheduled<'timer_fired' | 'cancel_requested' | 'generation_idle'>
  /** `told`: called with whether this decision counts, once it is on disk, or at once where another came first. */
  | (Scheduled<'approval_resolved'> & { readonly told?: (counts: boolean) => void })
  /** Model output. `said`: what the events were read from. */
  | { readonly type: 'protocol'; readonly said: readonly StreamPiece[]; readonly events: readonly ProtocolEvent[] }
  | { readonly type: 'reasoning'; readonly text: string }
  | { readonly type: 'usage'; readonly usage: Usage }
  | (GenerationEnded & {
      /** Text that gave no event before its end, and the events that the end of the text gave. */
      readonly said: readonly StreamPiece[];
      readonly events: readonly ProtocolEvent[];
      /** The model's text to the letter (L5). */
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
  | { readonly type: 'recalled'; readonly key: ActionKey; readonly found: Recalled }
  /** Live output of an attempt; not recorded (J4). */
  | {
      readonly type: 'progress';
      readonly key: ActionKey;
      readonly attempt: number;
      readonly data: EventData['progress'];
    }
  /** A piece of the model's text, for readers that asked for tokens; not recorded. */
  | { readonly type: 'token'; readonly text: string }
  /** A change of a feed that readers are told; not recorded (F2). */
  | { readonly type: 'feed'; readonly data: EventData['context_feed_updated'] }
  /** Time to write what is in memory only (J6). */
  | { readonly type: 'save' };

/**
 * An input in the journal. A run that is given the same inputs in the same order comes to the same state: that is
 * how it continues after a crash. The output of a completed action is not repeated here: it is in its event.
 *
 * `at`: epoch milliseconds. `random`: the random number that the run drew when it took the input.
 */
export type RecordedInput = { readonly at: number } & (
  | Scheduled<
      'run_started' | 'condition_evaluated' | 'recalled' | 'approval_resolved' | 'cancel_requested' | 'generation_idle'
    >
  | (Scheduled<'timer_fired'> & { readonly random: number })
  /** Why a person could not be asked about an action (J8). */
  | (Scheduled<'approval_asked'> & { readonly error: ActionError })
  | Extract<RunInput, { type: 'reasoning' | 'usage' }>
  /** Text of the generation, to the letter. */
  | { readonly type: 'text'; readonly text: string }
  /** The number of further characters of the text that was posted, which the journal holds already. */
  | { readonly type: 'posted_text'; readonly chars: number }
  | { readonly type: 'tool_call'; readonly delta: ToolCallDelta }
  | GenerationEnded
  /** `error` is null for a success. */
  | {
      readonly type: 'attempt_ended';
      readonly key: ActionKey;
      readonly attempt: number;
      readonly error: ActionError | null;
      readonly spent?: Spent;
      readonly random: number;
    }
);
