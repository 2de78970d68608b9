/** Waiting: on an injected clock, and for work that may be given up. */
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

/**
 * Settles with the work, or rejects with the signal's reason as soon as it aborts. The work then continues, and nobody
 * sees how it ends.
 */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const stop = (): void => reject(signal.reason as Error);
  if (signal.aborted) stop();
  else signal.addEventListener('abort', stop, { once: true });
  try {
    // the abort first: of two that have settled, the first one counts
    return await Promise.race([promise, work]);
  } finally {
    signal.removeEventListener('abort', stop);
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
