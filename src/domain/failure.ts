/** Failures as values, in the form that every attempt returns. */
import type { ActionError, ActionOutcome } from './action.ts';

export type Failure = Extract<ActionOutcome, { ok: false }>;

/** Not retryable unless `options` say so. */
export function failure(
  code: string,
  message: string,
  options: Partial<Omit<ActionError, 'code' | 'message'>> = {},
): Failure {
  return { ok: false, error: { code, message, retryable: false, ...options } };
}
