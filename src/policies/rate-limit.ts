/** Requests per minute as a rate with a burst of one minute; pure, with one number of state. */
import { EngineError } from '../domain/errors.ts';

const MINUTE_MS = 60_000;

/**
 * Takes one request, if the rate allows it.
 *
 * @param emptyAt when all requests so far will have drained, epoch milliseconds
 * @returns the new `emptyAt`, and null or the milliseconds until the next request is allowed
 */
export function takeRequest(
  emptyAt: number,
  { perMinute, now }: { readonly perMinute: number; readonly now: number },
): { readonly emptyAt: number; readonly retryAfterMs: number | null } {
  const costMs = MINUTE_MS / perMinute;
  const from = Math.max(emptyAt, now);
  const overMs = from + costMs - (now + MINUTE_MS);
  // Floating-point error: less than a millisecond over the limit is allowed.
  return overMs >= 1 ? { emptyAt, retryAfterMs: Math.ceil(overMs) } : { emptyAt: from + costMs, retryAfterMs: null };
}

/**
 * Reads `RATE_LIMIT`: requests per minute for each namespace and agent; unset or empty means no limit.
 *
 * @throws EngineError `internal`, so that a system with a wrong limit does not start without one
 */
export function parseRateLimit(text: string | undefined): number | null {
  const written = text?.trim() ?? '';
  if (written === '') return null;
  const perMinute = Number(written);
  if (Number.isFinite(perMinute) && perMinute > 0) return perMinute;
  throw new EngineError(
    'internal',
    `RATE_LIMIT must be a number of requests per minute, found "${written.slice(0, 20)}"`,
  );
}

export function rateLimited(agent: string, perMinute: number, retryAfterMs: number): EngineError {
  return new EngineError(
    'rate_limited',
    `More than ${perMinute} requests per minute to the agent "${agent}" in this namespace; try again in ${Math.ceil(retryAfterMs / 1_000)} s`,
    { retry_after_ms: retryAfterMs },
  );
}
