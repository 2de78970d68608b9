/** Failures as values: the shapes that every executor returns when an attempt does not succeed. */
import { excerptOf } from '../bounded/json-size.ts';
import type { ActionOutcome } from '../domain/action.ts';
import { EngineError, ERROR_TABLE, messageOf } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';
import { OutboundError } from './outbound/outbound-error.ts';

type Failure = Extract<ActionOutcome, { ok: false }>;

interface FailureOptions {
  /** The same attempt may work later (S7). */
  readonly retryable?: boolean;
  /** The attempt never reached its target. */
  readonly beforeDispatch?: boolean;
  readonly retryAfterMs?: number;
  /** The other side has too much to do. */
  readonly overloaded?: boolean;
}

export function failure(code: string, message: string, options: FailureOptions = {}): Failure {
  return { ok: false, error: { code, message, retryable: false, ...options } };
}

/** The failure of a parameter that has the wrong shape, in the words of `validateParameters`. */
export function wrongParameter(name: string, expected: string, found: unknown): Failure {
  const shown = found === undefined ? 'nothing' : quote(found);
  return failure('invalid_parameters', `parameters.${name}: expected ${expected}, got ${shown}`, {
    beforeDispatch: true,
  });
}

/**
 * What was thrown while an attempt ran, as a failure: an abort as `aborted`, a refusal of X2 under
 * its own code, a fault of ours under its code, anything else as `code`.
 */
export function failureOf(fault: unknown, signal: AbortSignal, code: string): Failure {
  if (signal.aborted) return failure('aborted', `stopped: ${messageOf(signal.reason)}`);
  if (fault instanceof OutboundError) {
    return failure(fault.code, fault.message, { retryable: fault.retryable, beforeDispatch: fault.beforeDispatch });
  }
  if (fault instanceof EngineError) {
    const { beforeDispatch, status, isFinal } = fault.details;
    const retryAfterMs = fault.details['retryAfterMs'] ?? fault.details['retry_after_ms'];
    return failure(fault.code, fault.message, {
      retryable: ERROR_TABLE[fault.code].retry === 'later' && isFinal !== true,
      ...(beforeDispatch === true ? { beforeDispatch } : {}),
      ...(typeof retryAfterMs === 'number' ? { retryAfterMs } : {}),
      ...(fault.code === 'runner_busy' || isOverload(status) ? { overloaded: true } : {}),
    });
  }
  return failure(code, messageOf(fault));
}

/** HTTP statuses by which a server says that it has too much to do: fewer requests at a time may help (S5). */
export function isOverload(status: unknown): boolean {
  return status === 429 || status === 503;
}

/** A value as a message shows it: compact JSON, cut. */
export function quote(value: unknown): string {
  return excerptOf(value, limits.excerptChars);
}
