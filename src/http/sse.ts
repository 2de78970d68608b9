/**
 * A session's events as a Server-Sent Events body (H2, J4).
 *
 * Invariants:
 *  1. A reader gets every journaled event after its cursor exactly once, in order. Events of actions that the runtime
 *     added to a workflow have no action name.
 *  2. Nothing is kept for a reader beyond the stream's own buffer: a reader that does not read falls back to the
 *     journal and is served from there when it reads again.
 *  3. A reader that has caught up gets the open blocks completely, then the live patches. Before the closing event of a
 *     block of which it may have missed patches, it gets the whole text as one patch. So a reader that only applies
 *     patches ends with the journal's text.
 *  4. A stream for one run ends after the run's terminal event. The stream of the request that started the run also ends
 *     when the run waits for people or clients; a stream of `GET …/events?run=` continues (J8).
 *  5. A stream opened with a token ends when the token expires, after a comment that explains it.
 *  6. A reader with a view gets nothing that the view hides, also not in patches (T1).
 *  7. The output of one turn is one chunk, encoded once for all readers with the same filter and form. In the compact form
 *     (compact-frames.ts), once for those that got the same chunk before.
 */
import {
  encodeEvent,
  isBlockEnd,
  isTextPatch,
  RUN_END_EVENTS,
  RUN_TERMINAL_EVENTS,
  wholePatch,
} from '../domain/event.ts';
import type { SessionEvent, TextPatch } from '../domain/event.ts';
import { limits } from '../domain/limits.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { Slices } from '../domain/work.ts';
import type { EventBatch, EventListener } from '../engine/session/broadcaster.ts';
import type { SessionView } from '../engine/session/session-view.ts';
import type { Fold, StreamEnd } from '../surfaces/surface.ts';
import { CompactEncoder } from './compact-frames.ts';
import type { Heartbeat } from './heartbeat.ts';

/** The source of a reader's events. */
export interface EventSource {
  /** A page of journaled events after this one, limited in number and size; empty if there are no more. */
  events(after: number): readonly SessionEvent[];
  openBlocks(): readonly TextPatch[];
  listen(listener: EventListener): () => void;
  /** Whether nothing more of this run will follow: all of it is in the journal. */
  hasEnded(runId: string): boolean;
  /** Whether this run waits for people and clients only now (J8, C3). */
  isWaiting(runId: string): boolean;
}

const encoder = new TextEncoder();
const HEARTBEAT = encoder.encode(': heartbeat\n\n');
const EXPIRED = encoder.encode(': the token has expired; the run continues\n\n');

/** One frame; `event_type` is another name of `type`. Only journaled events have an `id`, so that a client resumes at a journaled position. */
export function sseFrame(event: SessionEvent): string {
  const id = event.seq === null ? '' : `id: ${event.seq}\n`;
  const data = encodeEvent(event);
  // Text patches are the bulk of a stream: they have their type once in the data, and do not grow.
  const named = isTextPatch(event) ? data : `${data.slice(0, -1)},"event_type":"${event.type}"}`;
  return `${id}event: ${event.type}\ndata: ${named}\n\n`;
}

/** All readers get the same array of a batch, so each batch is encoded once. */
const encodedBatches = new WeakMap<EventBatch, Uint8Array>();

function encodeBatch(batch: EventBatch): Uint8Array {
  let bytes = encodedBatches.get(batch);
  if (bytes === undefined) {
    let text = '';
    for (const event of batch) text += sseFrame(event);
    bytes = encoder.encode(text);
    encodedBatches.set(batch, bytes);
  }
  return bytes;
}

/** When a stream expires. */
export interface StreamExpiry {
  readonly clock: Clock;
  /** Epoch milliseconds. */
  readonly at: number;
}

interface StreamOptions {
  /** Seq of the last event that the reader has. */
  readonly after: number;
  /** Only this run's events, and the stream ends with the run; null means the whole session. */
  readonly runId: string | null;
  /** Whether a stream for one run ends when the run waits for people and clients (J8, C3). Default: no. */
  readonly endsWaiting?: boolean;
  readonly expiry?: StreamExpiry | null;
  /** When the stream ends although the run goes on. Default: never. */
  readonly detaches?: StreamExpiry | null;
  /** Called if the reader leaves before the end of the stream. */
  readonly left?: () => void;
  /** What the reader may have; null: everything (T1). */
  readonly view?: Pick<SessionView, 'event'> | null;
  /** Counts reads from the journal and yields to other work. */
  readonly slices?: Slices;
  /** Whether frames leave out what the ones before them have said (Z4). Default: no. */
  readonly compact?: boolean;
}

/** The output format: bytes for a client, values for a parent session. */
interface Wire<Chunk> {
  readonly encode: (batch: EventBatch) => Chunk;
  readonly sizeBytes: (chunk: Chunk) => number;
  readonly heartbeat: Chunk | null;
  /** What precedes the end of the stream; null for nothing. */
  readonly last: (how: StreamEnd | 'detached') => Chunk | null;
}

const SSE: Wire<Uint8Array> = {
  encode: encodeBatch,
  sizeBytes: (chunk) => chunk.byteLength,
  heartbeat: HEARTBEAT,
  last: (how) => (how === 'token_expired' ? EXPIRED : null),
};

function compactWire(): Wire<Uint8Array> {
  const encoder = new CompactEncoder();
  return { ...SSE, encode: (batch) => encoder.encode(batch) };
}

const VALUES: Wire<EventBatch> = {
  encode: (batch) => batch,
  sizeBytes: (batch) => encodeBatch(batch).byteLength,
  heartbeat: null,
  last: () => null,
};

/** One reader's state: reading the journal, or at its end and live. */
class Reader<Chunk> {
  readonly #wire: Wire<Chunk>;
  readonly #source: EventSource;
  readonly #runId: string | null;
  readonly #endsWaiting: boolean;
  readonly #expiry: StreamExpiry | null;
  readonly #detaches: StreamExpiry | null;
  readonly #left: () => void;
  readonly #view: Pick<SessionView, 'event'> | null;
  readonly #slices: Slices | null;
  #cursor: number;
  #sentBytes = 0;
  #live = false;
  /** Seq of the last event that this reader had when it connected, or fell back to the journal. */
  #cutAt: number;
  /** Seq of the last event that this reader had when it went live; it gets later blocks completely. */
  #liveAt = 0;
  /** Blocks that were open at that time, whose text so far it was sent. */
  readonly #caughtUp = new Set<number>();
  #leave = (): void => undefined;

  constructor(wire: Wire<Chunk>, source: EventSource, options: StreamOptions) {
    this.#wire = wire;
    this.#expiry = options.expiry ?? null;
    this.#detaches = options.detaches ?? null;
    this.#left = options.left ?? (() => undefined);
    this.#view = options.view ?? null;
    this.#slices = options.slices ?? null;
    this.#source = source;
    this.#runId = options.runId;
    this.#endsWaiting = options.endsWaiting === true;
    this.#cursor = options.after;
    this.#cutAt = options.after;
  }

  start(controller: ReadableStreamDefaultController<Chunk>, heartbeat: Heartbeat | null): void {
    const stopListening = this.#source.listen((batch) => {
      if (batch === null) return this.#finish(controller, 'session_deleted');
      if (!this.#live) return;
      if ((controller.desiredSize ?? 0) > 0) return void this.#send(controller, batch);
      this.#live = false;
      this.#cutAt = this.#cursor;
    });
    const beat = this.#wire.heartbeat;
    const stopHeartbeat = heartbeat?.add(() => {
      if (beat !== null && (controller.desiredSize ?? 0) > 0) controller.enqueue(beat);
    });
    const stopWaiting = whenDue(this.#expiry, () => this.#expire(controller));
    const stopAttached = whenDue(this.#detaches, () => this.#finish(controller, 'detached'));
    this.#leave = () => {
      stopListening();
      stopHeartbeat?.();
      stopWaiting();
      stopAttached();
    };
  }

  /** The reader has room. @throws if the journal cannot be read: then the stream fails */
  async pull(controller: ReadableStreamDefaultController<Chunk>): Promise<void> {
    try {
      await this.#catchUp(controller);
    } catch (fault) {
      // A stream that has failed cannot be closed any more.
      this.#leave();
      throw fault;
    }
  }

  /** Sends journaled events, one slice per turn, until the reader has all. */
  async #catchUp(controller: ReadableStreamDefaultController<Chunk>): Promise<void> {
    if (this.#live) return;
    const roomBytes = (): number => (controller.desiredSize ?? 0) - (limits.readerQueueBytes - limits.readerPageBytes);
    while (roomBytes() > 0) {
      if (this.#slices?.full === true) {
        await this.#slices.pause();
        // The stream may have ended in the meantime; then there is no room.
        continue;
      }
      const page = this.#source.events(this.#cursor);
      if (page.length === 0) return this.#goLive(controller);
      const sentBefore = this.#sentBytes;
      if (this.#send(controller, page)) return;
      // Events that were filtered out were read as well.
      const sentBytes = this.#sentBytes - sentBefore || limits.readerPageBytes;
      this.#slices?.count(page.length * limits.eventChars + sentBytes);
      // Skips events of other runs that were not sent.
      this.#cursor = Math.max(this.#cursor, page.at(-1)?.seq ?? 0);
    }
  }

  cancel(): void {
    this.#leave();
    this.#left();
  }

  #goLive(controller: ReadableStreamDefaultController<Chunk>): void {
    // A client that reconnects after the end has everything, so its stream ends too.
    if (this.#runId !== null && this.#hasStopped(this.#runId)) return this.#finish(controller);
    this.#live = true;
    this.#liveAt = this.#cursor;
    this.#caughtUp.clear();
    // A block whose opening event this reader has not had yet is sent with its own first patch.
    const open = this.#source.openBlocks().filter(({ data }) => data.segment <= this.#cursor);
    for (const { data } of open) this.#caughtUp.add(data.segment);
    if (open.length > 0) this.#send(controller, open);
  }

  #hasStopped(runId: string): boolean {
    return this.#source.hasEnded(runId) || (this.#endsWaiting && this.#source.isWaiting(runId));
  }

  /** Enqueues the wanted events of a batch as one chunk. @returns whether the stream has ended */
  #send(controller: ReadableStreamDefaultController<Chunk>, batch: EventBatch): boolean {
    let chosen: readonly SessionEvent[] = batch;
    if (!batch.every((event) => this.#wants(event) && !this.#lacks(event))) {
      chosen = batch.filter((event) => this.#wants(event)).flatMap((event) => this.#whole(event));
    }
    const view = this.#view;
    if (view !== null) chosen = chosen.map((event) => view.event(event)).filter((event) => event !== null);
    // An `agent_waiting` in the journal may be in the past; whether the run waits now is known at the journal's end.
    const ends = this.#endsWaiting && this.#live ? RUN_TERMINAL_EVENTS : RUN_END_EVENTS;
    const end = this.#runId === null ? -1 : chosen.findIndex(({ type }) => ends.has(type));
    if (end !== -1) chosen = chosen.slice(0, end + 1);
    if (chosen.length > 0) {
      const chunk = this.#wire.encode(chosen);
      const bytes = this.#wire.sizeBytes(chunk);
      this.#sentBytes += bytes;
      if (bytes > 0) controller.enqueue(chunk);
    }
    this.#cursor = chosen.findLast(({ seq }) => seq !== null)?.seq ?? this.#cursor;
    if (end === -1) return false;
    this.#finish(controller);
    return true;
  }

  #wants(event: SessionEvent): boolean {
    const { seq, run_id: runId } = event;
    if (seq !== null && seq <= this.#cursor) return false;
    return this.#runId === null || runId === this.#runId;
  }

  /** Whether this event belongs to a block of which this reader has missed earlier patches. */
  #lacks(event: SessionEvent): boolean {
    if (!isBlockEnd(event) && !(this.#live && isTextPatch(event))) return false;
    const { segment } = event.data;
    return this.#live ? segment <= this.#liveAt && !this.#caughtUp.has(segment) : segment <= this.#cutAt;
  }

  /** The event itself. For a block with missed patches: only its closing event, preceded by the whole text. */
  #whole(event: SessionEvent): readonly SessionEvent[] {
    if (!this.#lacks(event)) return [event];
    return isBlockEnd(event) ? [wholePatch(event), event] : [];
  }

  /** The chunks in the reader's queue were sent in time; nothing more is sent. */
  #expire(controller: ReadableStreamDefaultController<Chunk>): void {
    this.#finish(controller, 'token_expired');
  }

  #finish(controller: ReadableStreamDefaultController<Chunk>, how: StreamEnd | 'detached' = 'stopped'): void {
    this.#leave();
    const last = this.#wire.last(how);
    if (last !== null) controller.enqueue(last);
    controller.close();
  }
}

/** @returns the cancel function */
function whenDue(expiry: StreamExpiry | null, callback: () => void): () => void {
  if (expiry === null) return () => undefined;
  const { clock, at } = expiry;
  return clock.schedule(Math.max(0, at - clock.now()), callback);
}

/** A client's stream. */
export function eventStream(
  source: EventSource,
  heartbeat: Heartbeat,
  options: StreamOptions,
): ReadableStream<Uint8Array> {
  return streamOf(options.compact === true ? compactWire() : SSE, source, heartbeat, options);
}

/** A run's stream in another protocol (E1 to E3). `options.after` is before the first event of the run. */
export function foldedStream(
  source: EventSource,
  heartbeat: Heartbeat,
  fold: Fold,
  options: StreamOptions,
): ReadableStream<Uint8Array> {
  const wire: Wire<Uint8Array> = {
    encode: (batch) => encoder.encode(batch.map((event) => fold.add(event)).join('')),
    sizeBytes: (chunk) => chunk.byteLength,
    heartbeat: HEARTBEAT,
    last: (how) => encoder.encode(how === 'detached' ? (fold.detached?.() ?? '') : fold.end(how)),
  };
  return streamOf(wire, source, heartbeat, options);
}

/** The same as values, for a reader in another object. */
export function batchStream(source: EventSource, options: StreamOptions): ReadableStream<EventBatch> {
  return streamOf(VALUES, source, null, options);
}

function streamOf<Chunk>(
  wire: Wire<Chunk>,
  source: EventSource,
  heartbeat: Heartbeat | null,
  options: StreamOptions,
): ReadableStream<Chunk> {
  const reader = new Reader(wire, source, options);
  return new ReadableStream<Chunk>(
    {
      start: (controller) => reader.start(controller, heartbeat),
      pull: (controller) => reader.pull(controller),
      cancel: () => reader.cancel(),
    },
    {
      highWaterMark: limits.readerQueueBytes,
      size: (chunk) => (chunk === undefined ? 0 : wire.sizeBytes(chunk)),
    },
  );
}

/** A stream that is not known yet: comments until it is (C5). It ends if the token expires before that. */
export function waitingStream(
  stream: Promise<ReadableStream<Uint8Array>>,
  heartbeat: Heartbeat,
  expiry: StreamExpiry | null,
): ReadableStream<Uint8Array> {
  let stop = (): void => undefined;
  const expired = Promise.withResolvers<null>();
  let reader: ReadableStreamDefaultReader<Uint8Array> | null = null;
  let isLeft = false;
  return new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(HEARTBEAT);
      // Nothing is kept for a reader that does not read.
      stop = heartbeat.add(() => (controller.desiredSize ?? 0) > 0 && controller.enqueue(HEARTBEAT));
      stream.catch(() => undefined);
      if (expiry === null) return;
      const { clock, at } = expiry;
      const cancel = clock.schedule(Math.max(0, at - clock.now()), () => expired.resolve(null));
      const stopBeats = stop;
      stop = () => {
        stopBeats();
        cancel();
      };
    },
    async pull(controller) {
      if (reader === null) {
        const known = await Promise.race([stream, expired.promise]);
        stop();
        if (known === null) {
          if (isLeft) return;
          controller.enqueue(EXPIRED);
          return controller.close();
        }
        reader = known.getReader();
      }
      if (isLeft) return await reader.cancel();
      const { done, value } = await reader.read();
      if (done) controller.close();
      else controller.enqueue(value as Uint8Array);
    },
    async cancel() {
      isLeft = true;
      stop();
      await reader?.cancel();
    },
  });
}

export const SSE_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
  'x-accel-buffering': 'no',
} as const;
