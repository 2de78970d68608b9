/** Why a runner did not accept a job: codes and the runner's own message (R7, R8). */
import { EngineError } from '../../domain/errors.ts';
import { parseObject } from '../../domain/json.ts';
import { OUTCOME_UNKNOWN } from './record.ts';

/** Errors that a platform reports if no connection was established, so nothing can have been sent. */
const NO_CONNECTION: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EAI_AGAIN',
]);

export type RunnerErrorCode = 'runner_busy' | 'runner_unavailable' | 'runner_rejected';

/** The job was not accepted, or it is unknown whether it was. */
export class RunnerError extends EngineError {
  /** How long the runner asked the caller to wait (R8). */
  readonly retryAfterMs: number | null;
  /** The runner reported that it did not accept the job: even an unsafe one may be retried (S7). */
  readonly beforeDispatch: boolean;

  constructor(
    code: RunnerErrorCode,
    message: string,
    options: {
      readonly beforeDispatch: boolean;
      readonly retryAfterMs?: number | undefined;
      /** The runner's own error code. */
      readonly problem?: string;
      /** The caller's time is used up: a retry is useless. */
      readonly isFinal?: boolean;
      readonly cause?: unknown;
    },
  ) {
    const { beforeDispatch, retryAfterMs, problem, isFinal, cause } = options;
    const details = {
      beforeDispatch,
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      ...(problem === undefined ? {} : { problem }),
      ...(isFinal === true ? { isFinal } : {}),
    };
    super(code, message, details, cause);
    this.beforeDispatch = beforeDispatch;
    this.retryAfterMs = retryAfterMs ?? null;
  }
}

/**
 * Converts the runner's answer for a job that it did not accept.
 *
 * @param mayBeThere an earlier attempt had no answer: only the runner's own answer says anything about that attempt
 */
export function refusalOf(
  { status, headers, text }: { status: number; headers: Headers; text: string },
  mayBeThere = false,
): RunnerError {
  const detail = parseObject(text)?.['detail'];
  const reason = typeof detail === 'string' ? detail : `it answered ${status}`;
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  const retryAfterMs = Number.isFinite(seconds) ? seconds * 1_000 : undefined;
  const code = parseObject(text)?.['code'];
  const problem = typeof code === 'string' ? { problem: code } : {};
  if (status === 429) {
    return new RunnerError('runner_busy', `The runner is at capacity: ${reason}`, {
      beforeDispatch: true,
      retryAfterMs,
    });
  }
  if (status >= 500) {
    // 503 is sent before anything happens; another 5xx may come from any proxy on the way.
    const what = code === OUTCOME_UNKNOWN ? 'The runner was lost' : 'The runner cannot accept jobs';
    return new RunnerError('runner_unavailable', `${what}: ${reason}`, {
      beforeDispatch: status === 503 && !mayBeThere,
      retryAfterMs,
      ...problem,
    });
  }
  return new RunnerError('runner_rejected', `The runner rejected the request: ${reason}`, {
    beforeDispatch: true,
    ...problem,
  });
}

/** A request that its own timeout has ended. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
}

/**
 * Why a request to a runner has no answer. The platform's own message is not used: it may contain the runner's address,
 * which is only for the operator.
 */
export function connectionFailure(fault: unknown): string {
  if (fault instanceof NoAnswer) return fault.message;
  return neverConnected(fault) ? 'there was no connection' : 'the connection failed';
}

/** Whether no connection was established, so nothing can have been sent. */
export function neverConnected(fault: unknown): boolean {
  const cause = fault instanceof Error ? fault.cause : undefined;
  return isCoded(cause) && NO_CONNECTION.has(cause.code);
}

function isCoded(value: unknown): value is { readonly code: unknown } {
  return typeof value === 'object' && value !== null && 'code' in value;
}
