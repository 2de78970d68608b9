/** Readers of the session's event stream: they connect, read at their own pace, disconnect and reconnect. */
import { frameDecoder } from '../../../src/client/frame-decoder.ts';
import { sseReader } from '../../../src/client/sse-reader.ts';
import { encodeEvent } from '../../../src/domain/event.ts';
import type { SessionEvent } from '../../../src/domain/event.ts';
import { CompactEncoder } from '../../../src/http/compact-frames.ts';
import { batchStream } from '../../../src/http/sse.ts';
import type { ReaderFrame, ReaderLog } from '../observation.ts';
import type { Request } from '../history.ts';
import type { Host } from './host.ts';
import { DiskFailure } from './disk-failure.ts';
import { HostGone } from './life.ts';
import type { Stage } from './stage.ts';

/** Pause before a new connection; doubled while no event of the journal arrives. */
const RECONNECT_MS = 15;
/** The longest pause after live events: shorter than what the world takes for its end. */
const RECONNECT_LIVE_MS = 400;
const RECONNECT_MOST_MS = 10_000;

export class Reader implements ReaderLog {
  readonly name: string;
  from = 0;
  readonly frames: ReaderFrame[] = [];
  #cursor = 0;
  #connection = -1;
  readonly #stage: Stage;
  readonly #script: Extract<Request, { type: 'reader' }>;
  readonly #connect: () => Host | null;
  /** Number of the session that it reads. */
  readonly incarnation: number;

  /** @param connect the current host, after it has started; null if the session was deleted */
  constructor(stage: Stage, name: string, script: Extract<Request, { type: 'reader' }>, connect: () => Host | null) {
    this.#stage = stage;
    this.name = name;
    this.#script = script;
    this.#connect = connect;
    this.incarnation = stage.incarnation;
  }

  /** Reads until the session is deleted. */
  async follow(): Promise<void> {
    for (let waitMs = RECONNECT_MS; ; waitMs = Math.min(waitMs * 2, RECONNECT_MOST_MS)) {
      const had = { cursor: this.#cursor, frames: this.frames.length };
      const host = this.#connect();
      if (host === null || host.incarnation !== this.incarnation) return;
      // The server may answer with an error, because its disk has failed.
      const read = this.#read(host).catch((fault: unknown) => {
        if (!(fault instanceof DiskFailure || fault instanceof HostGone)) throw fault;
      });
      await Promise.race([read, host.life.gone.promise]);
      if (this.#cursor > had.cursor) waitMs = RECONNECT_MS;
      else if (this.frames.length > had.frames) waitMs = Math.min(waitMs, RECONNECT_LIVE_MS);
      await this.#pause(waitMs);
    }
  }

  /** One connection, until the client or the server ends it. */
  async #read({ session, events, life }: Host): Promise<void> {
    if (!session.exists) return;
    await session.recover('read');
    if (this.#connection < 0 && this.#script.fromEnd) this.#cursor = this.from = this.#stage.disk.durableSeq;
    this.#connection += 1;
    const { slices } = session.read();
    const after = Math.min(this.#cursor, session.lastSeq);
    const stream = batchStream(events, { after, runId: null, slices }).getReader();
    const encoder = new CompactEncoder();
    const decoder = frameDecoder();
    const utf8 = new TextDecoder();
    for (let reads = 0; reads !== this.#script.reads; reads += 1) {
      const { done, value } = await stream.read();
      // The connection was lost, with everything in it.
      if (life.isOver) return;
      // The session was deleted, or its disk has failed: the next connection will tell.
      if (done) return;
      const sent = sseReader()(utf8.decode(encoder.encode(value)));
      const frames = this.#stage.broken.compact?.(sent) ?? sent;
      for (const [at, event] of value.entries()) {
        const compact = textOf(decoder(frames[at] ?? 'null'));
        this.frames.push({ event, text: encodeEvent(event), compact, connection: this.#connection });
        if (event.seq !== null) this.#cursor = event.seq;
      }
      if (this.#script.pauseMs > 0) await this.#pause(this.#script.pauseMs);
    }
    await stream.cancel();
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#stage.time.after(ms, () => resolve()));
  }
}

/** The event without the second name of its type, which only streams have. */
function textOf(event: SessionEvent): string {
  return JSON.stringify(event).replace(`,"event_type":"${event.type}"}`, '}');
}
