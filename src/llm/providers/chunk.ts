/** Parses the chunks of OpenAI-compatible streams, in the variants that servers send. */
import type { Json, JsonObject } from '../../domain/json.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { ModelDelta, Usage } from '../../domain/ports/model.ts';
import { readFinish } from './finish-reasons.ts';
import type { ReadFinish } from './finish-reasons.ts';

export type Content = Extract<ModelDelta, { type: 'text' | 'reasoning' | 'tool_call' }>;

export interface ReadChunk {
  readonly deltas: readonly Content[];
  /** The deltas are a whole message: what was streamed before is in it once more (N4). */
  readonly whole?: true;
  readonly finish: ReadFinish | null;
  /** The chunk has the member of the finish reason. */
  readonly isAnnounced?: true;
  /** Not a chunk, or an error in its choice. */
  readonly unreadable?: true;
  readonly usage: Usage | null;
}

const NOTHING: ReadChunk = { deltas: [], finish: null, usage: null };

/** @param chunk any value; an unexpected shape has no deltas and is not an error */
export function readChunk(chunk: unknown): ReadChunk {
  if (!isJsonObject(chunk)) return NOTHING;
  const choice = Array.isArray(chunk['choices']) ? chunk['choices'].find((item) => indexOf(item, 0) === 0) : null;
  const usage = usageOf(chunk['usage']) ?? usageOf(isJsonObject(chunk['x_groq']) ? chunk['x_groq']['usage'] : null);
  if (!isJsonObject(choice)) {
    const isChunk = Array.isArray(chunk['choices']) || 'usage' in chunk;
    return { ...NOTHING, usage, ...(isChunk ? {} : { unreadable: true }) };
  }
  const deltas = deltasOf(choice['delta']);
  // Some servers send a whole message when they do not stream, or at the end of a stream.
  const isWhole = deltas.length === 0 && isJsonObject(choice['message']);
  return {
    ...(isWhole ? { deltas: deltasOf(choice['message']), whole: true } : { deltas }),
    finish: readFinish(choice['finish_reason']),
    ...('finish_reason' in choice && !isWhole ? { isAnnounced: true } : {}),
    ...(isJsonObject(choice['error']) ? { unreadable: true } : {}),
    usage,
  };
}

function deltasOf(delta: Json | undefined): readonly Content[] {
  if (!isJsonObject(delta)) return [];
  const deltas: Content[] = [];
  const thought = thoughtOf(delta);
  const reasoning = textOf(delta['reasoning_content']) || textOf(delta['reasoning']) || thought;
  if (reasoning !== '') deltas.push({ type: 'reasoning', text: reasoning });
  // A refusal is model text in a separate field.
  const text = isThought(delta) ? '' : textOf(delta['content']) || textOf(delta['refusal']);
  if (text !== '') deltas.push({ type: 'text', text });
  // `function_call` is the older form of `tool_calls`.
  const older = isJsonObject(delta['function_call']) ? [{ function: delta['function_call'] }] : [];
  const listed = delta['tool_calls'];
  const calls: readonly Json[] = Array.isArray(listed) && listed.length > 0 ? listed : older;
  for (const [position, call] of calls.entries()) {
    if (!isJsonObject(call)) continue;
    const called = isJsonObject(call['function']) ? call['function'] : {};
    const given = called['arguments'];
    deltas.push({
      type: 'tool_call',
      index: indexOf(call, position),
      id: typeof call['id'] === 'string' && call['id'] !== '' ? call['id'] : null,
      name: typeof called['name'] === 'string' && called['name'] !== '' ? called['name'] : null,
      argumentsDelta: typeof given === 'string' ? given : isJsonObject(given) ? JSON.stringify(given) : '',
      ...(isJsonObject(call['extra_content']) ? { extra: call['extra_content'] } : {}),
    });
  }
  return deltas;
}

/** Reasoning that is sent as content: in separate parts (Mistral), or marked as a whole (Gemini). */
function thoughtOf(delta: JsonObject): string {
  const { content } = delta;
  if (isThought(delta)) return textOf(content).replace(/<\/?thought>/g, '');
  if (!Array.isArray(content)) return '';
  return content
    .map((part) => (isJsonObject(part) && part['type'] === 'thinking' ? textOf(part['thinking']) : ''))
    .join('');
}

function isThought(delta: JsonObject): boolean {
  const extra = delta['extra_content'];
  const google = isJsonObject(extra) ? extra['google'] : null;
  return isJsonObject(google) && google['thought'] === true;
}

/** Text, or the text of content parts. */
function textOf(content: Json | undefined): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part) => (isJsonObject(part) && typeof part['text'] === 'string' ? part['text'] : '')).join('');
}

/** Token counts in the standard fields. */
export function usageOf(usage: Json | undefined): Usage | null {
  if (!isJsonObject(usage)) return null;
  const details = isJsonObject(usage['prompt_tokens_details']) ? usage['prompt_tokens_details'] : {};
  const prompt = tokens(usage['prompt_tokens']);
  const completion = tokens(usage['completion_tokens']);
  if (prompt === null && completion === null) return null;
  return {
    promptTokens: prompt ?? 0,
    completionTokens: completion ?? 0,
    cachedTokens:
      tokens(details['cached_tokens']) ??
      tokens(usage['prompt_cache_hit_tokens']) ??
      tokens(usage['cached_tokens']) ??
      0,
    estimated: false,
  };
}

function tokens(value: Json | undefined): number | null {
  return typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER ? Math.round(value) : null;
}

function indexOf(item: Json | undefined, otherwise: number): number {
  const index = isJsonObject(item) ? item['index'] : null;
  return typeof index === 'number' && Number.isInteger(index) && index >= 0 ? index : otherwise;
}
