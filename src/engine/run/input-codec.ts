/**
 * The stored form of a run's inputs (J9).
 *
 * Runs that are active while a new version is deployed continue from the stored form of the old version. Therefore the
 * names in `STORED_AS` never change, and types that are no longer written can still be read.
 *
 * The fields of an input are cast and not validated: this code wrote them, and the replay compares the resulting events
 * with the recorded ones.
 */
import { EngineError } from '../../domain/errors.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import type { RecordedInput } from './run-input.ts';

/** The stored name of each type, in the field `is`. The other fields are stored unchanged, except in `recalled`. */
const STORED_AS = {
  run_started: 'start',
  text: 'text',
  posted_text: 'posted',
  declared: 'declared',
  reasoning: 'reasoning',
  tool_call: 'call',
  usage: 'usage',
  generation_ended: 'ended',
  attempt_ended: 'outcome',
  recalled: 'recalled',
  condition_evaluated: 'condition',
  approval_asked: 'unasked',
  timer_fired: 'timer',
  approval_resolved: 'approval',
  cancel_requested: 'cancel',
  generation_idle: 'idle',
  client_called: 'called',
  client_answered: 'answer',
  message_received: 'message',
  policy_judged: 'judged',
} as const satisfies Record<RecordedInput['type'], string>;

const TYPES: ReadonlyMap<Json | undefined, string> = new Map(
  Object.entries(STORED_AS).map(([type, stored]) => [stored, type]),
);

/** Encodes inputs as plain JSON. */
export function encodeInputs(inputs: readonly RecordedInput[]): Json {
  return inputs.map(encode);
}

/** @throws EngineError `not_recoverable` for an input that this version does not know */
export function decodeInputs(json: Json | undefined): readonly RecordedInput[] {
  return Array.isArray(json) ? json.map(decode) : [];
}

function encode(input: RecordedInput): JsonObject {
  const { type, at, ...fields } = input;
  const stored = { is: STORED_AS[type], at, ...fields } as unknown as JsonObject;
  if (input.type !== 'recalled' || typeof input.found === 'string') return stored;
  return { ...stored, found: input.found.error as unknown as Json };
}

function decode(stored: Json): RecordedInput {
  const { is, ...fields } = isJsonObject(stored) ? stored : {};
  const type = TYPES.get(is);
  if (type === undefined || typeof fields['at'] !== 'number') {
    const found = JSON.stringify(is ?? null).slice(0, 40);
    throw new EngineError('not_recoverable', `The record of the run contains an input of the unknown type ${found}`);
  }
  const { found } = fields;
  const input = type === 'recalled' && isJsonObject(found) ? { ...fields, found: { error: found } } : fields;
  return { type, ...input } as unknown as RecordedInput;
}

/** Longer text is stored in several pieces, so that each fits into a row even with escapes. */
const PIECE_CHARS = 100_000;

/**
 * Adds an input to a list, and merges it with the last one if both are pieces of the same text.
 *
 * @returns number of characters added
 */
export function addRecorded(list: RecordedInput[], input: RecordedInput): number {
  const last = list.at(-1);
  switch (input.type) {
    case 'text':
    case 'reasoning': {
      if (last?.type === input.type && last.text.length + input.text.length <= PIECE_CHARS) {
        list[list.length - 1] = { ...last, text: last.text + input.text };
      } else {
        for (let start = 0; start < input.text.length; start += PIECE_CHARS) {
          list.push({ ...input, text: input.text.slice(start, start + PIECE_CHARS) });
        }
      }
      return input.text.length;
    }
    case 'posted_text':
      if (last?.type === 'posted_text') list[list.length - 1] = { ...last, chars: last.chars + input.chars };
      else list.push(input);
      return 0;
    case 'tool_call': {
      // What a delta means depends on where it begins and ends (N4).
      const { argumentsDelta } = input.delta;
      let start = 0;
      for (; start + PIECE_CHARS < argumentsDelta.length; start += PIECE_CHARS) {
        const piece = argumentsDelta.slice(start, start + PIECE_CHARS);
        list.push({ ...input, delta: { ...input.delta, argumentsDelta: piece, more: true } });
      }
      list.push({ ...input, delta: { ...input.delta, argumentsDelta: argumentsDelta.slice(start) } });
      return argumentsDelta.length;
    }
    case 'declared':
      list.push(input);
      return JSON.stringify(input.declared).length;
    default:
      list.push(input);
      return 0;
  }
}
