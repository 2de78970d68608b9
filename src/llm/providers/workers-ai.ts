/**
 * Models through the Workers AI binding (L1), without URL and key. Newer models stream in the OpenAI format, older ones in
 * the platform's format (`{"response": "…"}`); both are supported.
 */
import { EngineError } from '../../domain/errors.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Clock, Random } from '../../domain/ports/clock.ts';
import type { ModelProvider, ModelRequest } from '../../domain/ports/model.ts';
import { limits } from '../../domain/limits.ts';
import { createCaller } from '../routing/caller.ts';
import { readParts } from './attachment-parts.ts';
import type { Connection } from '../routing/caller.ts';
import { answerChunks } from './answer-stream.ts';
import { readChunk, usageOf } from './chunk.ts';
import type { ReadChunk } from './chunk.ts';
import type { Endpoint } from '../routing/endpoints.ts';
import { PRESETS } from './presets.ts';
import { requestBody } from './wire.ts';

/** The used part of the binding. */
export interface AiBinding {
  run(model: string, inputs: Record<string, unknown>, options?: { readonly signal?: AbortSignal }): Promise<unknown>;
}

export interface WorkersAiOptions {
  readonly binding: AiBinding;
  /** Used when a request names no model, such as `@cf/meta/llama-3.3-70b-instruct-fp8-fast`. */
  readonly defaultModel: string;
  readonly endpoint: Endpoint;
  readonly clock: Clock;
  readonly random: Random;
  readonly firstTokenMs: number | null;
  readonly betweenTokensMs: number | null;
  /** The manifest's `vision`; null: found out with the first image. */
  readonly vision?: boolean | null;
}

export function createWorkersAiProvider(options: WorkersAiOptions): ModelProvider {
  const { clock, random, endpoint, defaultModel } = options;
  return createCaller(new BindingConnection(options.binding), {
    defaultModel,
    clock,
    random,
    sight: { takes: PRESETS['workers-ai'].quirks.attachments, vision: options.vision ?? null },
    endpoint,
    firstTokenMs: options.firstTokenMs ?? PRESETS['workers-ai'].quirks.firstTokenMs,
    betweenTokensMs: options.betweenTokensMs ?? limits.betweenTokensMs,
  });
}

class BindingConnection implements Connection {
  readonly secret = null;
  readonly keyAdvice = null;
  readonly read = readBindingChunk;
  readonly #binding: AiBinding;

  constructor(binding: AiBinding) {
    this.#binding = binding;
  }

  async open(
    request: ModelRequest,
    call: Parameters<Connection['open']>[1],
  ): Promise<AsyncIterable<readonly unknown[]>> {
    const { quirks } = PRESETS['workers-ai'];
    const parts = await readParts(request.messages, quirks.attachments);
    const { model: _model, stream_options: _options, ...body } = requestBody(request, { ...call, quirks, parts });
    let answer: unknown;
    try {
      answer = await this.#binding.run(call.model, body, { signal: call.signal });
    } catch (fault) {
      throw faultOf(fault);
    }
    // A model that cannot stream returns the whole answer.
    if (!(answer instanceof ReadableStream)) return once(answer, call.end);
    const { end, signal } = call;
    return answerChunks(answer as ReadableStream<Uint8Array>, { endpoint: 'Workers AI', end, page: false, signal });
  }
}

/** The binding reports errors only in the message: `3040: Capacity temporarily exceeded`. */
function faultOf(fault: unknown): unknown {
  if (!(fault instanceof Error)) return fault;
  const rejected = /\b(5007|5005|5004|3003|3006|3036|5018|5019)\b|no such model|invalid (input|prompt)|bad input/i;
  const code = rejected.test(fault.message) ? 'model_rejected' : 'model_unavailable';
  return new EngineError(code, `Workers AI answered with an error: ${fault.message.slice(0, 400)}`, {}, fault);
}

async function* once(answer: unknown, end: { marked: boolean }): AsyncGenerator<readonly unknown[]> {
  end.marked = true;
  yield [answer];
}

/** @param chunk any value; a chunk in the platform's own format has `response` or `tool_calls` at the top level */
export function readBindingChunk(chunk: unknown): ReadChunk {
  if (!isJsonObject(chunk) || Array.isArray(chunk['choices'])) return readChunk(chunk);
  const deltas: ReadChunk['deltas'][number][] = [];
  const text = responseText(chunk['response']);
  if (text !== '') deltas.push({ type: 'text', text });
  const calls: readonly Json[] = Array.isArray(chunk['tool_calls']) ? chunk['tool_calls'] : [];
  for (const [index, call] of calls.entries()) {
    if (!isJsonObject(call) || typeof call['name'] !== 'string') continue;
    deltas.push({ type: 'tool_call', index, id: idOf(call), name: call['name'], argumentsDelta: argumentsOf(call) });
  }
  const finish = calls.length > 0 ? ({ reason: 'tool_calls' } as const) : null;
  return { deltas, finish, usage: usageOf(chunk['usage']) };
}

/** Some models answer with a number or an object if JSON was requested. */
function responseText(response: Json | undefined): string {
  if (response == null) return '';
  return typeof response === 'string' ? response : JSON.stringify(response);
}

function idOf(call: JsonObject): string | null {
  return typeof call['id'] === 'string' && call['id'] !== '' ? call['id'] : null;
}

function argumentsOf(call: JsonObject): string {
  const given = call['arguments'];
  return typeof given === 'string' ? given : JSON.stringify(given ?? {});
}
