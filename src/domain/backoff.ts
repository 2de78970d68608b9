/** Delays between attempts: of actions, model calls, requests to runners, and sub-agents. Pure. */
import type { Backoff } from './action.ts';

/**
 * Milliseconds between a failed attempt and the next one.
 *
 * @param attempt the failed attempt, 1-based
 * @param random uniform in [0, 1]: full jitter of an exponential backoff; 1 means no jitter
 */
export function backoffMs(
  {
    backoff = 'exponential',
    delayMs,
    maxDelayMs,
  }: { readonly backoff?: Backoff; readonly delayMs: number; readonly maxDelayMs: number },
  attempt: number,
  random = 1,
): number {
  switch (backoff) {
    case 'none':
      return Math.min(delayMs, maxDelayMs);
    case 'linear':
      return Math.min(delayMs * attempt, maxDelayMs);
    case 'exponential':
      return Math.floor(Math.min(delayMs * 2 ** (attempt - 1), maxDelayMs) * random);
  }
}
