/** Number and duration of attempts (S7, S8). Pure arithmetic over declarations and errors. */
import type { ActionDeclaration, ActionError, ActionPolicy, RetryPolicy } from '../domain/action.ts';
import { backoffMs } from '../domain/backoff.ts';
import { limits } from '../domain/limits.ts';

/** The longest timer delay that all platforms support. */
export const LONGEST_TIMER_MS = 2_147_483_647;

/** Timeout of one attempt in milliseconds (S8). */
export function timeoutOf(action: ActionDeclaration, policy: ActionPolicy): number {
  return Math.max(1, Math.min(action.timeoutMs ?? policy.timeoutMs, limits.maxActionTimeoutMs));
}

/** How long a client may take for its call, in milliseconds: the manifest decides, not the model (C3). */
export function clientTimeoutOf(policy: ActionPolicy): number {
  return Math.max(1, Math.min(policy.timeoutMs, limits.clientToolMostMs));
}

/**
 * Whether the target reported overload: 429, 503, a full runner. It then gets fewer concurrent calls (S5), whether or
 * not this action is retried.
 */
export function isOverload(error: ActionError): boolean {
  const asksForPatience = error.retryable && error.retryAfterMs !== undefined;
  return error.overloaded === true || asksForPatience || error.code === 'runner_busy';
}

/**
 * Maximum number of attempts, including the first, for an action that has just failed with `error`.
 *
 * Unsafe actions get one attempt, unless it is known that the attempt never reached its target (S7).
 */
export function attemptsAllowed(action: ActionDeclaration, policy: ActionPolicy, error: ActionError): number {
  if (!error.retryable) return 1;
  const beforeDispatch = error.beforeDispatch === true;
  if (policy.effects === 'unsafe' && !beforeDispatch) return 1;
  const asked = action.retry?.maxAttempts ?? (action.onError === 'retry' ? limits.retryAttempts : null);
  const usual = beforeDispatch ? Math.max(policy.retry.maxAttempts, limits.retryAttempts) : policy.retry.maxAttempts;
  return Math.min(asked ?? usual, limits.maxRetryAttempts);
}

/**
 * Milliseconds between a failed attempt and the next one: exponential with full jitter, unless the action has another
 * backoff; never less than the target asked for (S7, R8).
 *
 * @param attempt the failed attempt, 1-based
 * @param random uniform in [0, 1)
 */
export function retryDelayMs(policy: RetryPolicy, attempt: number, error: ActionError, random: number): number {
  const delayMs = backoffMs(policy, attempt, random);
  return Math.min(Math.max(delayMs, error.retryAfterMs ?? 0, 0), limits.maxActionTimeoutMs);
}
