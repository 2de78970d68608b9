/**
 * Any OpenAI-compatible endpoint, through the `openai` package (L1, L2).
 *
 * Owns the retries and the time-outs of its calls, and what it has learned of the
 * endpoint's quirks. Does not own fallback to another model or what a broken stream means to a run.
 *
 * Invariants
 * 1. Nothing is tried again once a delta has been passed on.
 * 2. Every stream that is not broken by an error ends with `usage`, then `finish`.
 * 3. The key is sent to the origin of the base URL and nowhere else: redirects are not followed (L7).
 * 4. When the consumer stops reading or aborts, the request is aborted.
 */
import OpenAI from 'openai';
import type { ChatCompletionCreateParamsStreaming } from 'openai/resources/chat/completions';
import { EngineError } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';
import type { JsonObject } from '../domain/json.ts';
import type {
  ChatMessage,
  Clock,
  FinishReason,
  ModelDelta,
  ModelProvider,
  ModelRequest,
  Random,
  Usage,
} from '../domain/ports.ts';
import { estimateTokens } from '../domain/tokens.ts';
import { readChunk } from './chunk.ts';
import { originOf } from './address.ts';
import { failureOf } from './failure.ts';
import { pause } from './pause.ts';

export interface OpenAiOptions {
  /** Up to and without `/chat/completions`, such as `https://api.openai.com/v1`. */
  readonly baseUrl: string;
  /** Null for endpoints without one: no `Authorization` header is sent. */
  readonly apiKey: string | null;
  /** Used when a request names no model. */
  readonly defaultModel: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly fetch?: typeof globalThis.fetch;
}

type Content = Extract<ModelDelta, { type: 'text' | 'reasoning' | 'tool_call' }>;
/** Request fields that some servers refuse; left out once one has said so. */
type Quirk = 'stream_options' | 'max_tokens' | 'temperature' | 'tool_choice';

/** @throws EngineError `model_rejected` where the base URL is not an http or https address */
export function createOpenAiProvider(options: OpenAiOptions): ModelProvider {
  return new OpenAiProvider(options);
}

class OpenAiProvider implements ModelProvider {
  readonly name = 'openai';
  readonly #options: OpenAiOptions;
  readonly #origin: string;
  readonly #refused = new Set<Quirk>();

  constructor(options: OpenAiOptions) {
    this.#options = options;
    this.#origin = originOf(options.baseUrl);
  }

  async *stream(request: ModelRequest): AsyncGenerator<ModelDelta> {
    const { clock, random, defaultModel } = this.#options;
    const model = request.model ?? defaultModel;
    const sent: Content[] = [];
    for (let attempt = 1; ; attempt += 1) {
      let end: { usage: Usage | null; finish: FinishReason };
      try {
        end = yield* this.#once(request, sent);
      } catch (fault) {
        if (request.signal.aborted) {
          end = { usage: null, finish: 'abort' };
        } else {
          const failure = failureOf(fault, { endpoint: this.#origin, secret: this.#options.apiKey, now: clock.now() });
          const adapted = sent.length === 0 && this.#adapt(failure.status, failure.error.message);
          if (adapted) {
            attempt -= 1;
            continue;
          }
          const backoffMs = random() * Math.min(limits.retryMaxDelayMs, limits.retryDelayMs * 2 ** attempt);
          const delayMs = Math.max(backoffMs, failure.retryAfterMs ?? 0);
          const again = failure.retryable && sent.length === 0 && attempt < limits.modelAttempts;
          if (!again || delayMs > limits.retryMaxDelayMs) {
            if (sent.length > 0) yield { type: 'usage', usage: { ...estimate(request.messages, sent), model } };
            throw failure.error;
          }
          await pause(clock, delayMs, request.signal);
          if (!request.signal.aborted) continue;
          end = { usage: null, finish: 'abort' };
        }
      }
      yield { type: 'usage', usage: { ...(end.usage ?? estimate(request.messages, sent)), model } };
      yield { type: 'finish', reason: end.finish };
      return;
    }
  }

  /** One request; returns how it ended. @param sent takes every delta that was passed on */
  async *#once(
    request: ModelRequest,
    sent: Content[],
  ): AsyncGenerator<Content, { usage: Usage | null; finish: FinishReason }> {
    const { clock } = this.#options;
    const controller = new AbortController();
    const startedAt = clock.now();
    let finish: FinishReason | null = null;
    let usage: Usage | null = null;
    const end = { marked: false };
    const wait = <T>(work: Promise<T>): Promise<T> => {
      const leftMs =
        finish !== null
          ? limits.usageGraceMs
          : sent.length > 0
            ? limits.betweenTokensMs
            : Math.max(0, startedAt + limits.firstTokenMs - clock.now());
      const what =
        sent.length > 0
          ? `nothing for ${limits.betweenTokensMs / 1_000} s`
          : `no first token within ${limits.firstTokenMs / 1_000} s`;
      return settle(work, {
        clock,
        timeoutMs: leftMs,
        signal: request.signal,
        timeout: () => new EngineError('model_timeout', `The model endpoint ${this.#origin} sent ${what}`),
      });
    };
    try {
      const chunks = await wait(
        this.#client(end).chat.completions.create(this.#body(request), { signal: controller.signal }),
      );
      const iterator = chunks[Symbol.asyncIterator]();
      for (;;) {
        const next = await wait(iterator.next()).catch((fault: unknown) => {
          // The answer is complete; what may still have come was only the usage.
          if (finish !== null && !request.signal.aborted) return { done: true, value: undefined } as const;
          throw fault;
        });
        if (next.done === true) break;
        const read = readChunk(next.value);
        usage = read.usage ?? usage;
        for (const delta of read.deltas) {
          sent.push(delta);
          yield delta;
        }
        finish = read.finish ?? finish;
      }
      if (request.signal.aborted) return { usage, finish: 'abort' };
      if (finish === null && !end.marked) {
        throw new EngineError(
          'model_unavailable',
          `The model endpoint ${this.#origin} broke off in the middle of its answer`,
        );
      }
      return { usage, finish: finish ?? 'stop' };
    } finally {
      controller.abort();
    }
  }

  #body(request: ModelRequest): ChatCompletionCreateParamsStreaming {
    const { temperature, maxTokens, extra, messages, model, tools = [], answerOnly = false } = request;
    const body: JsonObject = {
      ...extra,
      model: model ?? this.#options.defaultModel,
      messages: messages.map((message) => toWire(message)),
      stream: true,
    };
    if (!this.#refused.has('stream_options')) body['stream_options'] = { include_usage: true };
    if (temperature !== null && !this.#refused.has('temperature')) body['temperature'] = temperature;
    if (maxTokens !== null) body[this.#refused.has('max_tokens') ? 'max_completion_tokens' : 'max_tokens'] = maxTokens;
    if (tools.length > 0) {
      body['tools'] = tools.map(({ name, summary, parameters }) => ({
        type: 'function',
        function: { name, description: summary, parameters },
      }));
      if (answerOnly && !this.#refused.has('tool_choice')) body['tool_choice'] = 'none';
    }
    // The manifest may pass fields that no type knows; the endpoint is the judge of them.
    return body as unknown as ChatCompletionCreateParamsStreaming;
  }

  /** Leaves out a field that the endpoint has just refused; false when it refused something else. */
  #adapt(status: number | null, message: string): boolean {
    if (status !== 400 && status !== 422) return false;
    const quirk: Quirk | null = message.includes('stream_options')
      ? 'stream_options'
      : message.includes('max_completion_tokens')
        ? 'max_tokens'
        : /\btemperature\b/.test(message)
          ? 'temperature'
          : message.includes('tool_choice')
            ? 'tool_choice'
            : null;
    if (quirk === null || this.#refused.has(quirk)) return false;
    this.#refused.add(quirk);
    return true;
  }

  /** A client for one request. @param end told when the stream has said its end mark */
  #client(end: { marked: boolean }): OpenAI {
    const { apiKey, baseUrl } = this.#options;
    return new OpenAI({
      baseURL: baseUrl,
      // The client insists on one; the header is taken out again where there is none.
      apiKey: apiKey ?? 'none',
      ...(apiKey === null ? { defaultHeaders: { authorization: null } } : {}),
      organization: null,
      project: null,
      adminAPIKey: null,
      webhookSecret: null,
      maxRetries: 0,
      // The time-outs are this class's; the client's own must not come first.
      timeout: limits.firstTokenMs * 2,
      logLevel: 'off',
      fetch: (input: string | URL | Request, init?: RequestInit) => this.#fetch(end, input, init),
    });
  }

  /** The one way out: checks where the key goes and listens for the end mark of the stream. */
  async #fetch(end: { marked: boolean }, input: string | URL | Request, init?: RequestInit): Promise<Response> {
    const url = new URL(input instanceof Request ? input.url : input);
    if (url.origin !== this.#origin) {
      throw new EngineError('model_rejected', `The key for ${this.#origin} is not sent to ${url.origin}`);
    }
    const call = this.#options.fetch ?? ((...call: Parameters<typeof globalThis.fetch>) => fetch(...call));
    const response = await call(input, { ...init, redirect: 'manual' });
    if (!response.ok || response.body === null) return response;
    let tail = '';
    const decoder = new TextDecoder();
    const listened = response.body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform: (bytes, controller) => {
          tail = (tail + decoder.decode(bytes.subarray(-END_MARK_BYTES))).slice(-END_MARK_BYTES);
          end.marked ||= tail.includes('[DONE]');
          controller.enqueue(bytes);
        },
      }),
    );
    return new Response(listened, { status: response.status, headers: response.headers });
  }
}

/** The end mark and the line ends that servers put behind it. */
const END_MARK_BYTES = 32;

/** Waits for `work`, but not beyond the time-out or the abort, even when the work ignores both. */
async function settle<T>(
  work: Promise<T>,
  guard: {
    readonly clock: Clock;
    readonly timeoutMs: number;
    readonly signal: AbortSignal;
    readonly timeout: () => Error;
  },
): Promise<T> {
  const { clock, timeoutMs, signal, timeout } = guard;
  const { promise: cut, reject } = Promise.withResolvers<never>();
  const aborted = (): void => reject(new EngineError('model_unavailable', 'The model call was aborted'));
  const cancel = clock.schedule(timeoutMs, () => reject(timeout()));
  signal.addEventListener('abort', aborted, { once: true });
  if (signal.aborted) aborted();
  try {
    return await Promise.race([work, cut]);
  } finally {
    cancel();
    signal.removeEventListener('abort', aborted);
  }
}

function toWire({ role, content, toolCallId, toolCalls }: ChatMessage): JsonObject {
  return {
    role,
    // Beside calls, null is how the API says that there is no text; some endpoints refuse an empty one.
    content: content === '' && toolCalls !== undefined ? null : content,
    ...(toolCallId === undefined ? {} : { tool_call_id: toolCallId }),
    ...(toolCalls === undefined
      ? {}
      : {
          tool_calls: toolCalls.map((call) => ({
            id: call.id,
            type: 'function',
            function: { name: call.name, arguments: call.arguments },
            ...(call.extra === undefined ? {} : { extra_content: call.extra }),
          })),
        }),
  };
}

/** For endpoints that count nothing themselves (L6). */
function estimate(messages: readonly ChatMessage[], sent: readonly Content[]): Usage {
  return {
    promptTokens: messages.reduce((sum, { content }) => sum + estimateTokens(content), 0),
    completionTokens: estimateTokens(
      sent
        .map((delta) => (delta.type === 'tool_call' ? (delta.name ?? '') + delta.argumentsDelta : delta.text))
        .join(''),
    ),
    cachedTokens: 0,
    estimated: true,
  };
}
