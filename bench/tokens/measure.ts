/** The cost of a call in tokens, in the forms of the protocol and as a native call. */
import { encode as encodeCl100k } from 'gpt-tokenizer/encoding/cl100k_base';
import { encode as encodeO200k } from 'gpt-tokenizer/encoding/o200k_base';
import { renderAction } from '../../src/protocol/prompt/examples.ts';
import type { ShownAction } from '../../src/protocol/prompt/examples.ts';

export const ENCODINGS = {
  /** GPT-4o and later. */
  o200k_base: (text: string): number => encodeO200k(text).length,
  /** GPT-4 and GPT-3.5. */
  cl100k_base: (text: string): number => encodeCl100k(text).length,
} as const;
export type Encoding = keyof typeof ENCODINGS;

export const FORMS = {
  'native, `<tool_call>{"name":…,"arguments":…}</tool_call>`': native,
  'compact, as the prompt teaches: with the attributes that the call needs': (call: ShownAction): string =>
    renderAction(call, 'compact'),
  'compact, name only': ({ name = '', parameters }: ShownAction): string =>
    renderAction({ name, parameters }, 'compact'),
  'compact, every call with id and mode': (call: ShownAction): string =>
    renderAction({ ...call, id: call.id ?? 'result', mode: call.mode ?? 'async' }, 'compact'),
  'full, with the same attributes': (call: ShownAction): string => renderAction(call, 'full'),
} as const;
export type Form = keyof typeof FORMS;

export function native({ name = '', parameters }: ShownAction): string {
  return `<tool_call>${nativeBody(name, parameters)}</tool_call>`;
}

/** A native call, if the tokenizer has special tokens for the two tags. */
export function tokensWithSpecialTags(count: (text: string) => number, { name = '', parameters }: ShownAction): number {
  return 2 + count(nativeBody(name, parameters));
}

function nativeBody(name: string, parameters: ShownAction['parameters']): string {
  return JSON.stringify({ name, arguments: parameters });
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}
