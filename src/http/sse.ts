/**
 * A session's events as a Server-Sent Events body (H2, J4).
 *
 * Invariants:
 *  1. A reader gets every journaled event after its cursor exactly once, in order.
 *  2. Nothing is kept for a reader beyond the stream's own buffer: one who does not read falls back
 *     to the journal and is served from there when it reads again.
 *  3. A reader that has just caught up gets the open blocks whole, then the live patches.
 *  4. A stream for one run ends after the run's terminal event.
 */
import { encodeEvent, RUN_TERMINAL_EVENTS } from '../domain/event.ts';
import type { SessionEvent } from '../domain/event.ts';
import { limits } from '../domain/limits.ts';
import type { Clock } from '../domain/ports.ts';
import type { EventBatch, EventListener } from '../engine/hub.ts';

/** Where a reader's events come from. */
export interface EventSource {
  events(after: number): readonly SessionEvent[];
  openBlocks(): readonly SessionEvent[];
  listen(listener: EventListener): () => void;
  /** Nothing of this run will come any more: all of it is in the journal. */
  hasEnded(runId: string): boolean;
}

const encoder = new TextEncoder();
const HEARTBEAT = encoder.encode(': heartbeat\n\n');

/** One frame: `id` for journaled events only, so that a client resumes where the journal can go on. */
export function sseFrame(event: SessionEvent): string {
  const id = event.seq === null ? '' : `id: ${event.seq}\n`;
  return `${id}event: ${event.type}\ndata: ${encodeEvent(event)}\n\n`;
}

/** Batches go to every reader as the same array: each is encoded once. */
const encodedBatches = new WeakMap<EventBatch, Uint8Array>();

function encodeBatch(batch: EventBatch): Uint8Array {
  let bytes = encodedBatches.get(batch);
  if (bytes === undefined) {
    bytes = encoder.encode(batch.map(sseFrame).join(''));
    encodedBatches.set(batch, bytes);
  }
  return bytes;
}

/**
 * @param options.after seq of the last event that the reader has
 * @param options.runId only this run's events, and the stream ends with the run
 */
export function eventStream(
  source: EventSource,
  clock: Clock,
  options: { readonly after: number; readonly runId: string | null },
): ReadableStream<Uint8Array> {
  const { runId } = options;
  let cursor = options.after;
  let live = false;
  let stopListening = (): void => undefined;
  let stopHeartbeat = (): void => undefined;

  const wanted = (event: SessionEvent): boolean =>
    (event.seq === null || event.seq > cursor) && (runId === null || event.run_id === runId);
  const ends = (event: SessionEvent): boolean => runId !== null && RUN_TERMINAL_EVENTS.has(event.type);

  const close = (): void => {
    stopListening();
    stopHeartbeat();
  };

  const finish = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
    close();
    controller.close();
  };

  /** Enqueues what the reader wants of a batch; true when the stream is over. */
  const send = (controller: ReadableStreamDefaultController<Uint8Array>, batch: EventBatch): boolean => {
    const mine = batch.every(wanted) ? batch : batch.filter(wanted);
    const end = mine.findIndex(ends);
    const chosen = end === -1 ? mine : mine.slice(0, end + 1);
    const last = chosen.findLast((event) => event.seq !== null);
    if (chosen.length > 0) controller.enqueue(encodeBatch(chosen));
    if (last?.seq != null) cursor = last.seq;
    if (end === -1) return false;
    finish(controller);
    return true;
  };

  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        stopListening = source.listen((batch) => {
          if (batch === null) return finish(controller);
          if (!live) return;
          if ((controller.desiredSize ?? 0) <= 0) live = false;
          else send(controller, batch);
        });
        const beat = (): void => {
          stopHeartbeat = clock.schedule(limits.heartbeatMs, () => {
            if ((controller.desiredSize ?? 0) > 0) controller.enqueue(HEARTBEAT);
            beat();
          });
        };
        beat();
      },
      pull(controller) {
        if (live) return;
        for (let page = source.events(cursor); page.length > 0; page = source.events(cursor)) {
          const before = cursor;
          if (send(controller, page)) return;
          // Other runs' events are passed over without being sent.
          cursor = Math.max(cursor, page.at(-1)?.seq ?? before);
          if ((controller.desiredSize ?? 0) <= 0) return;
        }
        // A client that comes back after the end has it all: its stream ends too.
        if (runId !== null && source.hasEnded(runId)) return finish(controller);
        live = true;
        // A block whose opening event this reader has not had yet comes with its own first patch.
        const open = source.openBlocks().filter((patch) => Number(patch.data['segment']) <= cursor);
        if (open.length > 0) send(controller, open);
      },
      cancel: close,
    },
    { highWaterMark: limits.readerQueueBytes, size: (chunk) => chunk?.byteLength ?? 0 },
  );
}

export const SSE_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
  'x-accel-buffering': 'no',
} as const;
