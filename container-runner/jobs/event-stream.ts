/** A session's events as Server-Sent Events: missed events, then live ones, with a heartbeat (R1). */
import type { Ledger } from '../ledger/ledger.ts';
import { limits } from '../limits.ts';

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
  'x-accel-buffering': 'no',
};

/**
 * Reads from the ledger at the reader's speed, so a slow reader needs no queue.
 *
 * @param after number of the reader's last event; null = start with unfinished and recently ended jobs
 * @param signal ends the stream when the reader disconnects or the runner stops
 */
export function eventStream(ledger: Ledger, session: string, after: number | null, signal: AbortSignal): Response {
  const encoder = new TextEncoder();
  let cursor = after ?? ledger.startingPoint(session);
  let wake: (() => void) | null = null;
  let fresh = true;
  let unwatch: () => void = () => undefined;
  let heartbeat: NodeJS.Timeout | undefined;
  let ended = false;

  function end(): void {
    ended = true;
    unwatch();
    clearInterval(heartbeat);
    signal.removeEventListener('abort', end);
    wake?.();
  }

  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        // the first bytes flush the headers
        controller.enqueue(encoder.encode(': open\n\n'));
        unwatch = ledger.watch(session, () => {
          fresh = true;
          wake?.();
        });
        heartbeat = setInterval(() => {
          if ((controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(': alive\n\n'));
        }, limits.heartbeatMs);
        signal.addEventListener('abort', end, { once: true });
        if (signal.aborted) end();
      },
      async pull(controller) {
        for (;;) {
          if (ended) {
            controller.close();
            return;
          }
          fresh = false;
          const events = ledger.events(session, cursor);
          const last = events.at(-1);
          if (last !== undefined) {
            cursor = last.seq;
            const frames = events.map(
              ({ seq, type, job, data }) =>
                `id: ${seq}\nevent: ${type}\ndata: {"job":${JSON.stringify(job)},"data":${data}}\n\n`,
            );
            controller.enqueue(encoder.encode(frames.join('')));
            return;
          }
          if (!fresh) {
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
            wake = null;
          }
        }
      },
      cancel: end,
    },
    // prefetch one batch
    { highWaterMark: 1 },
  );
  return new Response(body, { headers: HEADERS });
}
