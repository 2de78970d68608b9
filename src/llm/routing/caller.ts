/**
 * One model call over any connection: timeouts, retries, the circuit breaker and usage (L2, L6).
 *
 * Owns retries and the decision that a call has failed. Does not own the wire format (the connection), the fallback to
 * another model (`router.ts`) and the effect of a broken stream on a run.
 *
 * Invariants
 * 1. Nothing is retried after a delta has been passed on.
 * 2. Every stream that is not broken by an error ends with `usage`, then `finish`.
 * 3. When the consumer stops reading or aborts, the connection's signal is aborted.
 * 4. Every attempt that the breaker allowed reports its result once.
 * 5. Beyond `limits.generationBytes` of text, reasoning and calls, an answer ends with `length` and the connection is
 *    closed; only the size of what was passed on is kept.
 * 6. A request that is refused because of its images or files is sent again without them, at most once for each kind.
 */
import { EngineError } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import type { Clock, Random } from '../../domain/ports/clock.ts';
import type { FinishReason, ModelDelta, ModelProvider, ModelRequest, Usage } from '../../domain/ports/model.ts';
import { estimateMessages, estimateTokens, textBytes, tokensOf } from '../../domain/tokens.ts';
import { refusedKinds, shownMessages } from './attachments.ts';
import type { Kind, Sight } from './attachments.ts';
import type { Breaker } from './breaker.ts';
import type { Content, ReadChunk } from '../providers/chunk.ts';
import type { ReadFinish } from '../providers/finish-reasons.ts';
import type { Endpoint, Quirk } from './endpoints.ts';
import { failureOf } from './failure.ts';
import type { ModelFailure } from './failure.ts';
import { StreamTimeout } from './stream-timeout.ts';
import { backoffMs } from '../../domain/backoff.ts';
import { pause } from '../../domain/sleep.ts';

/** Source of a call's chunks. */
export interface Connection {
  /** Redacted from the endpoint's messages. */
  readonly secret: string | null;
  /** What to do if the endpoint does not accept the key, such as `check LLM_API_KEY`; null if it has no key. */
  readonly keyAdvice: string | null;
  /** Sends the request; resolves when the answer begins. Yields the chunks that arrived together as one list. */
  open(
    request: ModelRequest,
    call: {
      readonly model: string;
      readonly refused: ReadonlySet<Quirk>;
      readonly signal: AbortSignal;
      /** `marked` is set when the stream has sent its end marker. */
      readonly end: { marked: boolean };
    },
  ): Promise<AsyncIterable<readonly unknown[]>>;
  /** @param chunk any value */
  read(chunk: unknown): ReadChunk;
}

export interface CallerOptions {
  /** Used when a request names no model. */
  readonly defaultModel: string;
  readonly endpoint: Endpoint;
  readonly clock: Clock;
  readonly random: Random;
  readonly firstTokenMs: number;
  readonly betweenTokensMs: number;
  /** Which images and files the models of the endpoint take. */
  readonly sight: Sight;
}

/** What was passed on of an answer, and the usage reported so far. */
interface Sent {
  pieces: number;
  bytes: number;
  readonly types: Set<Content['type']>;
  usage: Usage | null;
  /** Told before the first piece. */
  notice: string | null;
}

/** What the chunks of one answer said about its end. */
interface Ending {
  /** The first reason that ends the answer (N1). */
  finish: ReadFinish | null;
  isPaused: boolean;
  /** A chunk had the member of the reason: the endpoint says when an answer is complete. */
  isAnnounced: boolean;
  /** Something other than a chunk, such as an error, was in the stream. */
  hasUnreadable: boolean;
  /** Chunks with calls since the reason, including its own: they may repeat calls (N4). */
  chunks: number;
}

/** `cut`: ended by the caller, so the endpoint's final usage is missing. `unknown`: the reason, if it is not known. */
type End = { readonly finish: FinishReason; readonly cut: boolean; readonly unknown?: string };

export function createCaller(connection: Connection, options: CallerOptions): ModelProvider {
  return new Caller(connection, options);
}

class Caller implements ModelProvider {
  readonly #connection: Connection;
  readonly #options: CallerOptions;

  constructor(connection: Connection, options: CallerOptions) {
    this.#connection = connection;
    this.#options = options;
  }

  get name(): string {
    return this.#options.defaultModel;
  }

  async *stream(asked: ModelRequest): AsyncGenerator<ModelDelta> {
    const { clock, random, endpoint, defaultModel, sight } = this.#options;
    const model = asked.model ?? defaultModel;
    const breaker = endpoint.breakerOf(model);
    const sent: Sent = { pieces: 0, bytes: 0, types: new Set(), usage: null, notice: null };
    /** Kinds of attachments that were refused in this call. */
    const without = new Set<Kind>();
    let request = asked;
    let end: End | null = null;
    let attempt = 1;
    while (end === null) {
      const refused = new Set([...endpoint.refusedBy(model), ...without]);
      const shown = shownMessages(asked.messages, sight, { refused, model });
      request = { ...asked, messages: shown.messages };
      sent.notice = shown.notice;
      const closedMs = breaker.enter();
      if (closedMs !== null) throw this.#breakerOpen(closedMs, breaker);
      try {
        end = yield* this.#once(request, model, breaker, sent);
      } catch (fault) {
        if (request.signal.aborted) {
          end = { finish: 'abort', cut: true };
          break;
        }
        const failure = failureOf(fault, {
          endpoint: endpoint.name,
          secret: this.#connection.secret,
          keyAdvice: this.#connection.keyAdvice,
          now: clock.now(),
        });
        const begun = sent.pieces > 0;
        const attached = begun ? null : refusedKinds(failure, shown.kinds);
        if (attached !== null) {
          for (const kind of attached.kinds) {
            without.add(kind);
            // A manifest that promises vision is believed: the refusal counts for this call only.
            if (attached.isGeneral && sight.vision !== true) endpoint.refusedBy(model).add(kind);
          }
          continue;
        }
        if (!begun && adapt(failure, endpoint.refusedBy(model))) continue;
        const retry = { delayMs: limits.modelRetryMs, maxDelayMs: limits.retryMaxDelayMs };
        const delayMs = Math.max(backoffMs(retry, attempt, random()), failure.retryAfterMs ?? 0);
        const again = failure.retryable && !begun && attempt < limits.modelAttempts && breaker.state === 'closed';
        if (!again || delayMs > limits.retryMaxDelayMs) {
          if (begun) yield { type: 'usage', usage: { ...partialUsage(request, sent), model } };
          throw failure.error;
        }
        attempt += 1;
        await pause(delayMs, clock, request.signal);
        if (request.signal.aborted) end = { finish: 'abort', cut: true };
      }
    }
    if (sent.notice !== null) yield noticeDelta(sent.notice);
    if (end.unknown !== undefined) {
      const message = `The model endpoint ${endpoint.name} ended its answer with ${end.unknown}, which is not a known reason: the generation counts as failed`;
      yield { type: 'notice', code: 'unknown_finish_reason', message };
    }
    const usage = end.cut ? partialUsage(request, sent) : completeUsage(request, sent);
    yield { type: 'usage', usage: { ...usage, model } };
    yield { type: 'finish', reason: end.finish };
  }

  /** One request; returns how it ended. @param sent counts what is passed on */
  async *#once(request: ModelRequest, model: string, breaker: Breaker, sent: Sent): AsyncGenerator<ModelDelta, End> {
    const { clock, endpoint } = this.#options;
    const controller = new AbortController();
    const startedAt = clock.now();
    const end = { marked: false };
    const ending: Ending = { finish: null, isPaused: false, isAnnounced: false, hasUnreadable: false, chunks: 0 };
    /** Time of the last chunk with content; empty chunks do not count as tokens. */
    let lastDeltaAt = startedAt;
    sent.usage = null;
    let reported = false;
    const report = (send: () => void): void => {
      if (!reported) send();
      reported = true;
    };
    const timeout = new StreamTimeout(clock, request.signal);
    const wait = <T>(work: Promise<T>): Promise<T> =>
      this.#wait(timeout, work, { sent, finish: ending.finish, lastDeltaAt });
    try {
      const chunks = await wait(
        this.#connection.open(request, {
          model,
          refused: endpoint.refusedBy(model),
          signal: controller.signal,
          end,
        }),
      );
      const iterator = chunks[Symbol.asyncIterator]();
      for (;;) {
        const next = await wait(iterator.next()).catch((fault: unknown) => {
          // The answer is complete; only usage could still follow.
          if (ending.finish !== null && !request.signal.aborted) return { done: true, value: undefined } as const;
          throw fault;
        });
        if (next.done === true) break;
        const isComplete = ending.finish !== null;
        const deltas = this.#readAll(next.value, sent, ending);
        for (const delta of deltas) {
          if (sent.pieces === 0) endpoint.learnLatency(model, clock.now() - startedAt);
          if (sent.notice !== null) yield noticeDelta(sent.notice);
          sent.notice = null;
          sent.pieces += 1;
          yield delta;
        }
        if (sent.bytes > limits.generationBytes) {
          report(() => breaker.succeeded());
          return { finish: 'length', cut: true };
        }
        // Measured after the reader's turn, whose time does not count for the endpoint.
        if (deltas.length > 0 || (!isComplete && ending.finish !== null)) lastDeltaAt = clock.now();
      }
      if (request.signal.aborted) return { finish: 'abort', cut: true };
      const result = endOf(ending, end.marked, sent);
      if (typeof result === 'string') {
        throw new EngineError('model_unavailable', `The model endpoint ${endpoint.name} ${result}`);
      }
      report(() => breaker.succeeded());
      return result;
    } catch (fault) {
      if (!request.signal.aborted) {
        const failure = failureOf(fault, { endpoint: endpoint.name, secret: null, keyAdvice: null, now: clock.now() });
        report(() => reportTo(breaker, failure));
      }
      throw fault;
    } finally {
      timeout.end();
      report(() => (sent.pieces > 0 ? breaker.succeeded() : breaker.abandoned()));
      controller.abort();
    }
  }

  /**
   * Reads chunks that arrived together, up to the one that exceeds the size of an answer. Pieces of text that follow each
   * other become one: the rest of the way costs per piece, not per character.
   */
  #readAll(chunks: readonly unknown[], sent: Sent, ending: Ending): readonly Content[] {
    const deltas: Content[] = [];
    for (const chunk of chunks) {
      const read = this.#connection.read(chunk);
      sent.usage = read.usage ?? sent.usage;
      noteEnd(ending, read);
      const isRepeat = read.whole === true && sent.types.size > 0;
      const mayRepeat = isRepeat || ending.finish !== null;
      if (mayRepeat && read.deltas.some(({ type }) => type === 'tool_call')) ending.chunks += 1;
      for (const content of read.deltas) {
        const isCall = content.type === 'tool_call';
        // The reader of calls knows which of them it has.
        if (isRepeat && !isCall && sent.types.has(content.type)) continue;
        const delta = isCall && mayRepeat ? { ...content, ending: ending.chunks } : content;
        sent.bytes += bytesOf(delta);
        const last = deltas.at(-1);
        const isSame = last !== undefined && last.type === delta.type && last.type !== 'tool_call';
        if (isSame && delta.type !== 'tool_call') deltas[deltas.length - 1] = { ...last, text: last.text + delta.text };
        else deltas.push(delta);
      }
      for (const { type } of read.deltas) sent.types.add(type);
      if (sent.bytes > limits.generationBytes) break;
    }
    return deltas;
  }

  /** Waits for `work` with the timeout of the answer's current stage. */
  #wait<T>(
    timeout: StreamTimeout,
    work: Promise<T>,
    progress: { readonly sent: Sent; readonly finish: ReadFinish | null; readonly lastDeltaAt: number },
  ): Promise<T> {
    const { clock, endpoint, firstTokenMs, betweenTokensMs } = this.#options;
    const begun = progress.sent.pieces > 0;
    const allowedMs = progress.finish !== null ? limits.usageGraceMs : begun ? betweenTokensMs : firstTokenMs;
    return timeout.wait(work, Math.max(0, progress.lastDeltaAt + allowedMs - clock.now()), () => {
      const what = begun
        ? `nothing for ${betweenTokensMs / 1_000} s`
        : `no first token within ${firstTokenMs / 1_000} s`;
      return new EngineError('model_timeout', `The model endpoint ${endpoint.name} sent ${what}`);
    });
  }

  #breakerOpen(forMs: number, { failures }: Breaker): EngineError {
    const { endpoint } = this.#options;
    return new EngineError(
      'model_unavailable',
      `The model endpoint ${endpoint.name} has failed ${failures} times in a row and is not called for another ${Math.ceil(forMs / 1_000)} s`,
      { retry_after_ms: forMs, circuit: 'open' },
    );
  }
}

/** A rejection shows that the endpoint works. A 429 is not a failure either, unless it requests a pause. */
function reportTo(breaker: Breaker, { error, status, retryAfterMs }: ModelFailure): void {
  const rests = retryAfterMs !== null && retryAfterMs > limits.retryMaxDelayMs;
  if (error.code === 'model_rejected') breaker.succeeded();
  else if (status === 429 && !rests) breaker.abandoned();
  else breaker.failed(retryAfterMs);
}

const QUIRKS: readonly (readonly [Quirk, RegExp])[] = [
  ['stream_options', /stream_options/],
  ['max_tokens', /max_completion_tokens/],
  ['temperature', /\btemperature\b/],
  ['tool_choice', /tool_choice/],
  ['user_after_tool', /role.{0,20}user.{0,20}after.{0,20}role.{0,20}tool/i],
  ['system', /(system|developer) (role|message)|(role|message)\W{1,4}(system|developer)|["'`](system|developer)["'`]/i],
];

/** Records a field that the endpoint rejected; false if it rejected something else, or the same field again. */
function adapt({ status, error }: ModelFailure, refused: Set<Quirk>): boolean {
  // Some servers answer 500 if a model's chat template does not support a message.
  if (status !== 400 && status !== 422 && status !== 500) return false;
  const quirk = QUIRKS.find(([, pattern]) => pattern.test(error.message))?.[0];
  if (quirk === undefined || refused.has(quirk)) return false;
  refused.add(quirk);
  return true;
}

function noteEnd(ending: Ending, { finish, isAnnounced, unreadable }: ReadChunk): void {
  if (finish?.reason === 'paused') ending.isPaused = true;
  else ending.finish ??= finish;
  ending.isAnnounced ||= isAnnounced === true;
  ending.hasUnreadable ||= unreadable === true;
}

/** How an answer has ended (N1); a text says why it has failed. */
function endOf({ finish, isPaused, isAnnounced, hasUnreadable }: Ending, isMarked: boolean, sent: Sent): End | string {
  if (finish !== null) {
    const { reason, unknown } = finish;
    if (reason === 'error' && sent.pieces === 0) return `ended its answer with ${unknown} before its first text`;
    return {
      finish: reason === 'paused' ? 'length' : reason,
      cut: false,
      ...(unknown === undefined ? {} : { unknown }),
    };
  }
  if (!isMarked) return 'closed the connection during its answer';
  // The model has more to say.
  if (isPaused) return { finish: 'length', cut: false };
  if (hasUnreadable) return 'sent something other than an answer, and no finish reason';
  if (isAnnounced && sent.types.has('tool_call')) return 'ended an answer with calls without a finish reason';
  return { finish: 'stop', cut: false };
}

function noticeDelta(message: string): ModelDelta {
  return { type: 'notice', code: 'attachments_not_shown', message };
}

function bytesOf(delta: Content): number {
  return delta.type === 'tool_call'
    ? textBytes(delta.name ?? '') + textBytes(delta.argumentsDelta)
    : textBytes(delta.text);
}

/** Usage of a complete answer: as reported, unless the endpoint reports zero (L6). */
function completeUsage(request: ModelRequest, sent: Sent): Usage {
  const { usage, pieces } = sent;
  const counted = usage !== null && (usage.promptTokens > 0 || usage.completionTokens > 0 || pieces === 0);
  return counted ? usage : estimate(request, sent);
}

/** Usage of an interrupted answer: the endpoint's report may be incomplete. */
function partialUsage(request: ModelRequest, sent: Sent): Usage {
  const estimated = estimate(request, sent);
  const { usage } = sent;
  if (usage === null) return estimated;
  return {
    ...estimated,
    promptTokens: usage.promptTokens > 0 ? usage.promptTokens : estimated.promptTokens,
    completionTokens: Math.max(usage.completionTokens, estimated.completionTokens),
    cachedTokens: usage.cachedTokens,
  };
}

/** For endpoints that report no usage (L6). */
function estimate({ messages, tools = [] }: ModelRequest, { bytes }: Sent): Usage {
  const calls = messages.flatMap(({ toolCalls = [] }) => toolCalls.map((call) => call.name + call.arguments));
  const prompt = estimateMessages(messages) + calls.reduce((sum, text) => sum + estimateTokens(text), 0);
  return {
    promptTokens: prompt + (tools.length === 0 ? 0 : estimateTokens(JSON.stringify(tools))),
    completionTokens: tokensOf(bytes),
    cachedTokens: 0,
    estimated: true,
  };
}
