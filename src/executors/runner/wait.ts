/** Waits for a runner: work that was not sent to any runner is offered again until its time is up (S7, R7). */
import { isJsonObject, type JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { Clock, Random } from '../../domain/ports/clock.ts';
import type { JobObserver } from '../../domain/ports/runner.ts';
import { pause } from '../../domain/sleep.ts';
import { RunnerError } from './error.ts';

/** How long work waits for a runner. */
export interface RunnerWait {
  /** The work's timeout, including the wait. */
  readonly timeoutMs: number;
  /** How long it waits while the runners are full; default: not at all. */
  readonly busyMs?: number;
  /** For the jitter of pauses while they are full; default: none. */
  readonly random?: Random | undefined;
}

/**
 * Offers work to the runners repeatedly while none can be reached, or all are full, and nothing was sent. A rejection and
 * a lost answer are returned to the caller immediately.
 *
 * @param offer one round over the runners. Repeated offers must be identical, because a runner accepts an id once. The
 *   caller's signal ends it when the time is up.
 * @throws RunnerError `runner_unavailable` shortly before the time is up, not retryable; `runner_busy` after `busyMs`
 */
export async function retryUntilReached<T>(
  clock: Clock,
  { timeoutMs, busyMs = 0, random = () => 0 }: RunnerWait,
  { signal, waiting }: Pick<JobObserver, 'signal' | 'waiting'>,
  offer: () => Promise<T>,
): Promise<T> {
  const startedAt = clock.now();
  const until = startedAt + timeoutMs - Math.min(limits.runnerWaitMarginMs, timeoutMs / 10);
  const busyUntil = Math.min(until, startedAt + busyMs);
  let reported = '';
  let busyFactor = 1;
  for (;;) {
    let refused: RunnerError;
    try {
      return await offer();
    } catch (fault) {
      if (!(fault instanceof RunnerError) || !fault.beforeDispatch || signal.aborted) throw fault;
      refused = fault;
    }
    const now = clock.now();
    const isBusy = refused.code === 'runner_busy';
    if (isBusy && now >= busyUntil) throw refused;
    if (!isBusy && refused.code !== 'runner_unavailable') throw refused;
    if (now >= until) throw timedOut(refused, now - startedAt);
    const reason = isBusy ? 'all runners are at capacity' : refused.message;
    if (reason !== reported) waiting?.(reason);
    reported = reason;
    const leastMs = Math.max(limits.runnerWaitPollMs, refused.retryAfterMs ?? 0);
    // Jobs that were rejected together must not come back together.
    const pauseMs = isBusy ? leastMs * busyFactor * (1 + random()) : leastMs;
    busyFactor = isBusy ? Math.min(2 * busyFactor, limits.runnerBusyMostFactor) : 1;
    await pause(Math.min(pauseMs, (isBusy ? busyUntil : until) - now), clock, signal);
    signal.throwIfAborted();
  }
}

function timedOut(refused: RunnerError, ms: number): RunnerError {
  const message = `No runner could be reached within ${Math.round(ms / 100) / 10} s (${refused.message}). Nothing was sent; see GET /health`;
  return new RunnerError('runner_unavailable', message, { beforeDispatch: true, isFinal: true, cause: refused });
}

/**
 * Why a runner accepts no jobs, without its address.
 *
 * @param answer its answer to `/health`; null if it did not answer
 */
export function describeAbsence(answer: JsonObject | null): string {
  if (answer === null) return 'the runner does not answer';
  const status = typeof answer['status'] === 'string' ? answer['status'] : 'not ready';
  const images = imagesOf(answer);
  const at = images.findIndex(({ state }) => state === 'building');
  const building = at < 0 ? '' : ` and builds the image ${images[at]?.name ?? ''} (${at + 1} of ${images.length})`;
  return `the runner is ${status}${building}`;
}

/** The base images that a starting runner builds, finished ones first. */
function imagesOf(answer: JsonObject): { readonly name: string; readonly state: string }[] {
  const starting = answer['starting'];
  const images = isJsonObject(starting) ? starting['images'] : null;
  if (!Array.isArray(images)) return [];
  const known = images.filter(isJsonObject).map(({ name, state }) => ({ name: String(name), state: String(state) }));
  const order = ['ready', 'failed', 'building', 'waiting'];
  return known.toSorted((one, other) => order.indexOf(one.state) - order.indexOf(other.state));
}
