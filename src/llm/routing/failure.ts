/** Classifies errors of model endpoints, and whether a retry may help. */
import { APIConnectionError, APIError } from 'openai';
import { EngineError, messageOf } from '../../domain/errors.ts';
import { isJsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';

export interface ModelFailure {
  readonly error: EngineError;
  readonly retryable: boolean;
  /** The endpoint's `Retry-After`. */
  readonly retryAfterMs: number | null;
  readonly status: number | null;
}

const QUOTED_CHARS = 400;
const OVERLOADED: ReadonlySet<number> = new Set([408, 409, 425, 429]);

/**
 * @param endpoint its name in messages: the origin, never the key
 * @param secret redacted from the endpoint's messages
 * @param keyAdvice what to do if the endpoint does not accept the key, such as `check LLM_API_KEY`
 */
export function failureOf(
  fault: unknown,
  {
    endpoint,
    secret,
    keyAdvice,
    now,
  }: {
    readonly endpoint: string;
    readonly secret: string | null;
    readonly keyAdvice: string | null;
    readonly now: number;
  },
): ModelFailure {
  const ours = engineErrorIn(fault);
  if (ours !== null) {
    return { error: ours, retryable: ours.code === 'model_unavailable', retryAfterMs: null, status: null };
  }
  const detail = quoted(fault, secret);
  if (fault instanceof APIError && !(fault instanceof APIConnectionError)) {
    const status = statusOf(fault);
    const retryAfterMs = retryAfter(fault.headers, now);
    const later = status === null || ((OVERLOADED.has(status) || status >= 500) && fault.code !== 'insufficient_quota');
    const advice = keyAdvice === null ? '' : adviceFor(fault.status, keyAdvice);
    const message =
      status !== null && status >= 300 && status < 400
        ? `The model endpoint ${endpoint} redirects (${status}); configure its final URL, because the key is not sent to another address`
        : `The model endpoint ${endpoint} answered with an error: ${detail}${advice}`;
    return {
      error: new EngineError(
        later ? 'model_unavailable' : 'model_rejected',
        message,
        { ...(status === null ? {} : { status }), ...(retryAfterMs === null ? {} : { retry_after_ms: retryAfterMs }) },
        fault,
      ),
      retryable: later,
      retryAfterMs,
      status,
    };
  }
  const message =
    fault instanceof SyntaxError
      ? `The model endpoint ${endpoint} sent invalid JSON`
      : `The model endpoint ${endpoint} could not be reached or closed the connection: ${detail}`;
  return {
    error: new EngineError('model_unavailable', message, {}, fault),
    retryable: true,
    retryAfterMs: null,
    status: null,
  };
}

/** @param status of the answer itself: an error inside a stream comes after the key was accepted */
function adviceFor(status: number | undefined, keyAdvice: string): string {
  if (status === 401) return `. To correct the key, ${keyAdvice}`;
  return status === 403 ? `. If the key may not use this model, ${keyAdvice}` : '';
}

/** An EngineError, even if the client wrapped it as a connection error. */
function engineErrorIn(fault: unknown): EngineError | null {
  if (fault instanceof EngineError) return fault;
  return fault instanceof APIConnectionError && fault.cause instanceof EngineError ? fault.cause : null;
}

/** The HTTP status, or the status in an error inside the stream. */
function statusOf(fault: APIError): number | null {
  if (fault.status !== undefined) return fault.status;
  const inner: unknown = fault.error;
  const code = isJsonObject(inner) ? Number(inner['code'] ?? inner['status']) : Number.NaN;
  return Number.isInteger(code) && code >= 400 && code < 600 ? code : null;
}

function quoted(fault: unknown, secret: string | null): string {
  let cause = fault;
  // "Connection error." is not informative; the reason is one or two causes deeper.
  while (cause instanceof Error && cause.cause instanceof Error) cause = cause.cause;
  const outer = messageOf(fault);
  const inner = messageOf(cause);
  const message = fault instanceof APIError && !(fault instanceof APIConnectionError) ? outer : inner || outer;
  const safe = secret === null || secret === '' ? message : message.replaceAll(secret, '[redacted]');
  return safe.replace(/\s+/g, ' ').slice(0, QUOTED_CHARS).toWellFormed();
}

/** `Retry-After` in seconds or as a date, `retry-after-ms` in milliseconds. */
function retryAfter(headers: Headers | undefined, now: number): number | null {
  const exact = Number(headers?.get('retry-after-ms') ?? Number.NaN);
  if (exact >= 0) return atMost(exact);
  const written = headers?.get('retry-after');
  if (written == null) return null;
  const seconds = Number(written);
  if (!Number.isNaN(seconds)) return atMost(seconds * 1_000);
  const date = Date.parse(written);
  return Number.isNaN(date) ? null : atMost(date - now);
}

/** Limits the wait that an external server requests. */
function atMost(ms: number): number {
  return Math.min(Math.max(0, ms), limits.retryAfterMaxMs);
}
