/** Why a runner did not take a job, in codes and in its own words (R7, R8). */
import { EngineError } from '../../domain/errors.ts';
import { parseObject } from '../../domain/json.ts';

/** What a platform reports when no connection came about, so that nothing can have been sent. */
const NO_CONNECTION: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EAI_AGAIN',
]);

export type RunnerErrorCode = 'runner_busy' | 'runner_unavailable' | 'runner_rejected';

/** The job was not taken, or it is not known whether it was. */
export class RunnerError extends EngineError {
  /** How long the runner asked to be left alone (R8). */
  readonly retryAfterMs: number | null;
  /** The runner said that it did not take the job: even an unsafe one may be tried again (S7). */
  readonly beforeDispatch: boolean;

  constructor(
    code: RunnerErrorCode,
    message: string,
    options: {
      readonly beforeDispatch: boolean;
      readonly retryAfterMs?: number | undefined;
      /** The runner's own code for its refusal. */
      readonly problem?: string;
      /** The caller's time is used up: another try is of no use. */
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
 * The runner's own words for why it did not take a job.
 *
 * @param mayBeThere an earlier attempt had no answer: what is not the runner's own word says nothing about that one
 */
export function refusalOf(
  { status, headers, text }: { status: number; headers: Headers; text: string },
  base: string,
  mayBeThere = false,
): RunnerError {
  const detail = parseObject(text)?.['detail'];
  const said = typeof detail === 'string' ? detail : `it answered ${status}`;
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  const retryAfterMs = Number.isFinite(seconds) ? seconds * 1_000 : undefined;
  if (status === 429) {
    return new RunnerError('runner_busy', `The runner has no free place: ${said}`, {
      beforeDispatch: true,
      retryAfterMs,
    });
  }
  if (status >= 500) {
    // 503 is said before anything happens; another 5xx may come from anywhere on the way
    return new RunnerError('runner_unavailable', `The runner at ${base} cannot take jobs: ${said}`, {
      beforeDispatch: status === 503 && !mayBeThere,
      retryAfterMs,
    });
  }
  const problem = parseObject(text)?.['code'];
  return new RunnerError('runner_rejected', `The runner refused: ${said}`, {
    beforeDispatch: true,
    ...(typeof problem === 'string' ? { problem } : {}),
  });
}

/** No connection came about, so that nothing can have been sent. */
export function neverConnected(fault: unknown): boolean {
  const cause = fault instanceof Error ? fault.cause : undefined;
  return isCoded(cause) && NO_CONNECTION.has(cause.code);
}

function isCoded(value: unknown): value is { readonly code: unknown } {
  return typeof value === 'object' && value !== null && 'code' in value;
}
