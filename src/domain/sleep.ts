/** Waiting on an injected clock: the only two ways to wait in `src/`. */
import type { Clock } from './ports/clock.ts';

/** Resolves after `delayMs` on the clock; rejects with the signal's reason as soon as it aborts. */
export function sleep(delayMs: number, clock: Clock, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    wait(delayMs, clock, signal, resolve, () => reject(signal?.reason as Error));
  });
}

/** Like `sleep`, but an abort ends the wait without an error: the caller checks the signal. */
export function pause(delayMs: number, clock: Clock, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    wait(delayMs, clock, signal, resolve, resolve);
  });
}

/** Settles with the work, or resolves with `otherwise` after the time limit. */
export async function within<T, U>(work: Promise<T>, timeoutMs: number, clock: Clock, otherwise: U): Promise<T | U> {
  const late = Promise.withResolvers<U>();
  const cancelTimer = clock.schedule(timeoutMs, () => late.resolve(otherwise));
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    cancelTimer();
  }
}

function wait(
  delayMs: number,
  clock: Clock,
  signal: AbortSignal | undefined,
  onTime: () => void,
  onAbort: () => void,
): void {
  if (signal?.aborted === true) return onAbort();
  const stop = (): void => {
    cancel();
    onAbort();
  };
  const cancel = clock.schedule(delayMs, () => {
    signal?.removeEventListener('abort', stop);
    onTime();
  });
  signal?.addEventListener('abort', stop, { once: true });
}
