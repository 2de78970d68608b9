import type { Clock } from './ports.ts';

/** Resolves after `delayMs` on the clock; rejects with the signal's reason as soon as it aborts. */
export function sleep(delayMs: number, clock: Clock, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason as Error);
      return;
    }
    const stop = (): void => {
      cancel();
      reject(signal.reason as Error);
    };
    const cancel = clock.schedule(delayMs, () => {
      signal.removeEventListener('abort', stop);
      resolve();
    });
    signal.addEventListener('abort', stop, { once: true });
  });
}
