import type { Clock } from '../../domain/ports.ts';

/** Waits by the injected clock; resolves early, and in any case without an error, when `signal` aborts. */
export async function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      signal.removeEventListener('abort', done);
      cancel();
      resolve();
    };
    const cancel = clock.schedule(delayMs, done);
    signal.addEventListener('abort', done, { once: true });
  });
}
