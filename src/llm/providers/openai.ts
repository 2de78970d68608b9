/**
 * Any OpenAI-compatible endpoint, through the `openai` package (L1). Retries and timeouts are common to all connections
 * and are in `caller.ts`.
 *
 * Invariants
 * 1. The key is sent only to the origin of the base URL: redirects are not followed (L7).
 * 2. Each request has a separate client, so calls share no state.
 */
import OpenAI from 'openai';
import type { ChatCompletionCreateParamsStreaming } from 'openai/resources/chat/completions';
import { EngineError } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import type { Clock, Random } from '../../domain/ports/clock.ts';
import type { ModelProvider, ModelRequest } from '../../domain/ports/model.ts';
import { TRACEPARENT } from '../../domain/trace.ts';
import { originOf } from './address.ts';
import { readParts } from './attachment-parts.ts';
import { answerChunks } from './answer-stream.ts';
import { createCaller } from '../routing/caller.ts';
import type { Connection } from '../routing/caller.ts';
import { readChunk } from './chunk.ts';
import { Endpoint } from '../routing/endpoints.ts';
import { errorBody } from './error-body.ts';
import { GENERIC } from './presets.ts';
import type { ProviderQuirks, Preset } from './presets.ts';
import { requestBody } from './wire.ts';

export interface OpenAiOptions {
  /** Without `/chat/completions`, for example `https://api.openai.com/v1`. */
  readonly baseUrl: string;
  /** Null for endpoints without a key: no header is sent. */
  readonly apiKey: string | null;
  /** For the message of a 401 or 403: which setting or secret to check. */
  readonly keyAdvice?: string;
  /** `authorization` unless the preset has another one. */
  readonly keyHeader?: Preset['keyHeader'];
  /** Used when a request names no model. */
  readonly defaultModel: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly quirks?: ProviderQuirks;
  /** The manifest's `vision`; default: found out with the first image. */
  readonly vision?: boolean | null;
  /** The remembered state of the endpoint; default: a new one. */
  readonly endpoint?: Endpoint;
  readonly firstTokenMs?: number | null;
  readonly betweenTokensMs?: number | null;
  readonly fetch?: typeof globalThis.fetch;
}

/** @throws EngineError `model_rejected` if the base URL is not an HTTP(S) URL */
export function createOpenAiProvider(options: OpenAiOptions): ModelProvider {
  const { clock, random, defaultModel, quirks = GENERIC } = options;
  const origin = originOf(options.baseUrl);
  return createCaller(new OpenAiConnection(options, origin), {
    defaultModel,
    clock,
    random,
    sight: { takes: quirks.attachments, vision: options.vision ?? null },
    endpoint: options.endpoint ?? new Endpoint({ name: origin, key: null }, clock),
    firstTokenMs: options.firstTokenMs ?? quirks.firstTokenMs,
    betweenTokensMs: options.betweenTokensMs ?? limits.betweenTokensMs,
  });
}

class OpenAiConnection implements Connection {
  readonly secret: string | null;
  readonly keyAdvice: string | null;
  readonly read = readChunk;
  readonly #options: OpenAiOptions;
  readonly #origin: string;

  constructor(options: OpenAiOptions, origin: string) {
    this.#options = options;
    this.#origin = origin;
    this.secret = options.apiKey;
    this.keyAdvice = options.keyAdvice ?? null;
  }

  async open(
    request: ModelRequest,
    call: Parameters<Connection['open']>[1],
  ): Promise<AsyncIterable<readonly unknown[]>> {
    const { quirks = GENERIC } = this.#options;
    const parts = await readParts(request.messages, quirks.attachments);
    const body = requestBody(request, { model: call.model, quirks, refused: call.refused, parts });
    // The manifest may pass fields without types; the endpoint validates them. The client's own decoder costs several
    // times as much as the answer's text (docs/decisions/040).
    const response = await this.#client()
      .chat.completions.create(body as unknown as ChatCompletionCreateParamsStreaming, {
        signal: call.signal,
        ...(request.trace === undefined ? {} : { headers: { [TRACEPARENT]: request.trace } }),
      })
      .asResponse();
    if (response.body === null) return none();
    const page = response.headers.get('content-type')?.startsWith('text/html') === true;
    const { headers, body: answer } = response;
    return answerChunks(answer, { endpoint: this.#origin, end: call.end, page, signal: call.signal, headers });
  }

  /** A client for one request. */
  #client(): OpenAI {
    const { apiKey, baseUrl, keyHeader = 'authorization' } = this.#options;
    const named = keyHeader === 'authorization' ? apiKey : null;
    return new OpenAI({
      baseURL: baseUrl,
      // The client requires a key; the header is removed if there is none.
      apiKey: named ?? 'none',
      defaultHeaders: {
        // Its own is the name of its class, which has no name in a minified bundle.
        'user-agent': 'cortex-edge',
        ...(named === null ? { authorization: null } : {}),
        ...(named !== null || apiKey === null || keyHeader === null ? {} : { [keyHeader]: `Bearer ${apiKey}` }),
      },
      organization: null,
      project: null,
      adminAPIKey: null,
      webhookSecret: null,
      maxRetries: 0,
      // `caller.ts` enforces the timeouts, so the client's own must be longer.
      timeout: limits.maxActionTimeoutMs,
      logLevel: 'off',
      fetch: (input: string | URL | Request, init?: RequestInit) => this.#fetch(input, init),
    });
  }

  /** All requests pass here: checks the destination of the key, and shortens error answers. */
  async #fetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    const url = new URL(input instanceof Request ? input.url : input);
    if (url.origin !== this.#origin) {
      throw new EngineError('model_rejected', `The key for ${this.#origin} is not sent to ${url.origin}`);
    }
    const call = this.#options.fetch ?? ((...call: Parameters<typeof globalThis.fetch>) => fetch(...call));
    const response = await call(input, { ...init, redirect: 'manual' });
    if (!response.ok) {
      const { status, headers } = response;
      const body = status >= 400 ? errorBody(await beginningOf(response)) : null;
      return body === null ? response : new Response(body, { status, headers: withoutLength(headers) });
    }
    return response;
  }
}

/** An answer without a body has no chunks. */
async function* none(): AsyncGenerator<readonly unknown[]> {}

/** The beginning of an error answer; does not wait for the rest. */
async function beginningOf(response: Response): Promise<string> {
  if (response.body === null) return '';
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    text += decoder.decode(read.value, { stream: true });
    bytes += read.value.length;
    if (bytes >= limits.modelErrorBytes) break;
  }
  await reader.cancel().catch(() => undefined);
  return text;
}

function withoutLength(headers: Headers): Headers {
  const kept = new Headers(headers);
  for (const name of ['content-length', 'content-encoding', 'transfer-encoding']) kept.delete(name);
  kept.set('content-type', 'application/json');
  return kept;
}
