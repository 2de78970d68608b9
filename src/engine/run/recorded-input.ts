/**
 * What happened to a run, in the form in which the journal keeps it (J9). A run that is given the
 * same inputs in the same order comes to the same state: that is how it goes on after a crash.
 *
 * Results are not repeated here: a completed action's output stands in its event.
 */
import type { ActionError, ActionKey } from '../../domain/action.ts';
import type { Json } from '../../domain/json.ts';
import type { FinishReason, ModelDelta, Usage } from '../../domain/ports.ts';
import type { Spent } from '../../domain/spent.ts';
import type { RunPolicy, SchedulerInput, TimerId } from '../../scheduler/types.ts';

export type ToolCallDelta = Extract<ModelDelta, { type: 'tool_call' }>;
export type ConditionResult = Extract<SchedulerInput, { type: 'condition_evaluated' }>['result'];

/** `at`: epoch milliseconds. `random`: what chance gave when the input was taken. */
export type RecordedInput = { readonly at: number } & (
  | { readonly is: 'start'; readonly policy: RunPolicy }
  /** Text of the generation, to the letter. */
  | { readonly is: 'text'; readonly text: string }
  /** So many further characters of the text that was posted whole. */
  | { readonly is: 'posted'; readonly chars: number }
  | { readonly is: 'reasoning'; readonly text: string }
  | { readonly is: 'call'; readonly delta: ToolCallDelta }
  | { readonly is: 'usage'; readonly usage: Usage }
  | {
      readonly is: 'ended';
      readonly finish: FinishReason;
      readonly error: { readonly code: string; readonly message: string } | null;
    }
  /** `error` is null for a success, whose output is in `action_completed`. */
  | {
      readonly is: 'outcome';
      readonly key: ActionKey;
      readonly attempt: number;
      readonly error: ActionError | null;
      readonly spent?: Spent;
      readonly random: number;
    }
  | { readonly is: 'recalled'; readonly key: ActionKey; readonly found: 'outcome' | 'nothing' | ActionError }
  | { readonly is: 'condition'; readonly key: ActionKey; readonly result: ConditionResult }
  /** Why a person could not be asked about an action (J8). */
  | { readonly is: 'unasked'; readonly key: ActionKey; readonly error: ActionError }
  | { readonly is: 'timer'; readonly timer: TimerId; readonly random: number }
  | { readonly is: 'approval'; readonly key: ActionKey; readonly approved: boolean; readonly note: string | null }
  | { readonly is: 'cancel'; readonly reason: string }
  | { readonly is: 'idle' }
);

/** A longer text stands in several pieces, so that each fits in a row, however it is escaped. */
const PIECE_CHARS = 100_000;

/**
 * Adds an input to a list, as one with the last where both are pieces of the same text.
 *
 * @returns how many characters of text it brought
 */
export function addRecorded(list: RecordedInput[], input: RecordedInput): number {
  const last = list.at(-1);
  switch (input.is) {
    case 'text':
    case 'reasoning': {
      if (last?.is === input.is && last.text.length + input.text.length <= PIECE_CHARS) {
        list[list.length - 1] = { ...last, text: last.text + input.text };
      } else {
        for (let start = 0; start < input.text.length; start += PIECE_CHARS) {
          list.push({ ...input, text: input.text.slice(start, start + PIECE_CHARS) });
        }
      }
      return input.text.length;
    }
    case 'posted':
      if (last?.is === 'posted') list[list.length - 1] = { ...last, chars: last.chars + input.chars };
      else list.push(input);
      return 0;
    case 'call': {
      const { argumentsDelta } = input.delta;
      list.push({ ...input, delta: { ...input.delta, argumentsDelta: argumentsDelta.slice(0, PIECE_CHARS) } });
      for (let start = PIECE_CHARS; start < argumentsDelta.length; start += PIECE_CHARS) {
        const rest = argumentsDelta.slice(start, start + PIECE_CHARS);
        list.push({ ...input, delta: { ...input.delta, argumentsDelta: rest } });
      }
      return argumentsDelta.length;
    }
    default:
      list.push(input);
      return 0;
  }
}

export function recordedJson(inputs: readonly RecordedInput[]): Json {
  return inputs as unknown as Json;
}

export function recordedFrom(json: Json | undefined): readonly RecordedInput[] {
  return Array.isArray(json) ? (json as unknown as RecordedInput[]) : [];
}
