/** Failures of executors: wrong parameters, and exceptions during an attempt. */
import { excerptOf } from '../bounded/json-size.ts';
import { EngineError, ERROR_TABLE, messageOf } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';
import { failure } from '../domain/failure.ts';
import type { Failure } from '../domain/failure.ts';
import { OutboundError } from '../domain/outbound-error.ts';

/** The failure for a parameter of the wrong type, in the format of `validateParameters`. */
export function wrongParameter(name: string, expected: string, found: unknown): Failure {
  const shown = found === undefined ? 'nothing' : quote(found);
  return failure('invalid_parameters', `parameters.${name}: expected ${expected}, got ${shown}`, {
    beforeDispatch: true,
  });
}

/**
 * Converts an exception during an attempt to a failure: an abort to `aborted`, a rejected request (X2) and an
 * EngineError to their own codes, anything else to `code`.
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

/** Whether an HTTP status reports overload: fewer concurrent requests may help (S5). */
export function isOverload(status: unknown): boolean {
  return status === 429 || status === 503;
}

/** A value as shown in a message: compact JSON, cut. */
export function quote(value: unknown): string {
  return excerptOf(value, limits.excerptChars);
}
