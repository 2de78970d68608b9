/** Waits for a runner: work that was not sent to any runner is offered again until its time is up (S7, R7). */
import { isJsonObject, type JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { JobObserver } from '../../domain/ports/runner.ts';
import { pause } from '../../domain/sleep.ts';
import { RunnerError } from './error.ts';

/**
 * Offers work to the runners repeatedly while none can be reached and nothing was sent. A full runner, a rejection and
 * a lost answer are returned to the caller immediately.
 *
 * @param timeoutMs the work's timeout, including the wait
 * @param offer one round over the runners. Repeated offers must be identical, because a runner accepts an id once. The
 *   caller's signal ends it when the time is up.
 * @throws RunnerError `runner_unavailable` shortly before the time is up; not retryable
 */
export async function retryUntilReached<T>(
  clock: Clock,
  timeoutMs: number,
  { signal, waiting }: Pick<JobObserver, 'signal' | 'waiting'>,
  offer: () => Promise<T>,
): Promise<T> {
  const startedAt = clock.now();
  const until = startedAt + timeoutMs - Math.min(limits.runnerWaitMarginMs, timeoutMs / 10);
  let reported = '';
  for (;;) {
    let refused: RunnerError;
    try {
      return await offer();
    } catch (fault) {
      const mayWait = fault instanceof RunnerError && fault.code === 'runner_unavailable' && fault.beforeDispatch;
      if (!mayWait || signal.aborted) throw fault;
      refused = fault;
    }
    const now = clock.now();
    if (now >= until) throw timedOut(refused, now - startedAt);
    if (refused.message !== reported) waiting?.(refused.message);
    reported = refused.message;
    const pauseMs = Math.max(limits.runnerWaitPollMs, refused.retryAfterMs ?? 0);
    await pause(Math.min(pauseMs, until - now), clock, signal);
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
