/** Why an answer ended, in the words of all endpoints (N1). */
import type { Json } from '../../domain/json.ts';
import type { FinishReason } from '../../domain/ports/model.ts';

/** `unknown`: the reason as the endpoint wrote it, quoted and cut, if it is not in the table. `reason` is `error` then. */
export interface ReadFinish {
  readonly reason: Extract<FinishReason, 'stop' | 'tool_calls' | 'length' | 'content_filter' | 'error'> | 'paused';
  readonly unknown?: string;
}

/** The closed table. Compared without case. */
const REASONS: Readonly<Record<Exclude<ReadFinish['reason'], 'error'>, string>> = {
  stop: 'stop end_turn stop_sequence eos eos_token end complete completed',
  tool_calls: 'tool_calls tool_use function_call',
  length: 'length max_tokens model_length max_output_tokens model_context_window_exceeded',
  content_filter:
    'content_filter content_filtered safety sensitive refusal recitation blocklist prohibited_content spii image_safety guardrail_intervened',
  // The answer has not ended, whether the endpoint sends more of it or waits for another request.
  paused: 'pause_turn',
};

const KNOWN: ReadonlyMap<string, ReadFinish> = new Map(
  Object.entries(REASONS).flatMap(([reason, words]) =>
    words.split(' ').map((word) => [word, { reason: reason as keyof typeof REASONS }] as const),
  ),
);

/** Of an unknown reason, in messages. */
const SHOWN_CHARS = 80;

/** @returns null if the answer has not ended */
export function readFinish(said: Json | undefined): ReadFinish | null {
  if (said === undefined || said === null) return null;
  const text = typeof said === 'string' ? said.trim() : JSON.stringify(said);
  const word = text.toLowerCase();
  if (word === '' || word === 'null' || word === 'none') return null;
  return KNOWN.get(word) ?? { reason: 'error', unknown: JSON.stringify(text.slice(0, SHOWN_CHARS)) };
}
