/**
 * A reader of a session's event stream over HTTP: it reads at its own pace, loses its connection and reconnects. Every
 * other connection has the compact form.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { createParser } from 'eventsource-parser';
import { frameDecoder } from '../../src/client/frame-decoder.ts';
import type { FrameDecoder } from '../../src/client/frame-decoder.ts';
import type { SessionEvent } from '../../src/domain/event.ts';
import type { Request } from '../simulation/history.ts';
import type { ReaderFrame, ReaderLog } from '../simulation/observation.ts';
import { LOST, request } from './client.ts';

type Script = Pick<Extract<Request, { type: 'reader' }>, 'fromEnd' | 'pauseMs' | 'reads'>;

/** Reads everything, as it comes. */
export const PATIENT: Script = { fromEnd: false, pauseMs: 0, reads: null };

const RECONNECT_MS = 20;

export class SseReader implements ReaderLog {
  readonly name: string;
  from = 0;
  readonly frames: ReaderFrame[] = [];
  readonly #url: string;
  readonly #script: Script;
  readonly #onEvent: (event: SessionEvent) => void;
  readonly #leave = new AbortController();
  #cursor = 0;
  #connection = -1;

  /** @param url of the session */
  constructor(name: string, url: string, script: Script, onEvent: (event: SessionEvent) => void = () => undefined) {
    this.name = name;
    this.#url = url;
    this.#script = script;
    this.#onEvent = onEvent;
  }

  /** The last journaled event that it got. */
  get cursor(): number {
    return this.#cursor;
  }

  leave(): void {
    this.#leave.abort();
  }

  /** Reads until it leaves, or the session is deleted. */
  async follow(): Promise<void> {
    if (this.#script.fromEnd) {
      const answer = await request(this.#url);
      if (answer === LOST || answer.status !== 200) return;
      this.#cursor = this.from = (answer.body as { readonly last_seq: number }).last_seq;
    }
    while (!this.#leave.signal.aborted) {
      const isOver = await this.#read().catch(() => false);
      if (isOver) return;
      await delay(RECONNECT_MS);
    }
  }

  /** Reads one connection until it ends. @returns true if the session was deleted */
  async #read(): Promise<boolean> {
    const { signal } = this.#leave;
    const own = new AbortController();
    const frames = this.#connection % 2 === 0 ? null : frameDecoder();
    const format = frames === null ? 'full' : 'compact';
    const response = await fetch(`${this.#url}/events?after=${this.#cursor}&format=${format}`, {
      signal: AbortSignal.any([signal, own.signal]),
    });
    if (response.status === 404) return true;
    if (!response.ok || response.body === null) return false;
    this.#connection += 1;
    const parser = createParser({
      onEvent: ({ id, data, event }) => this.#take(id, frames === null ? full(data, event) : whole(frames, data)),
    });
    const decoder = new TextDecoder();
    let reads = 0;
    for await (const chunk of response.body) {
      parser.feed(decoder.decode(chunk, { stream: true }));
      reads += 1;
      if (reads === this.#script.reads) break;
      if (this.#script.pauseMs > 0) await delay(this.#script.pauseMs, undefined, { signal });
    }
    own.abort();
    return false;
  }

  #take(id: string | undefined, text: string): void {
    const event = JSON.parse(text) as SessionEvent;
    this.frames.push({ event, text, compact: text, connection: this.#connection });
    if (id !== undefined) this.#cursor = Number(id);
    this.#onEvent(event);
  }
}

/** The event of a full frame. Journaled events have their type twice in it. */
function full(data: string, type = ''): string {
  const named = `,"event_type":"${type}"}`;
  return data.endsWith(named) ? `${data.slice(0, -named.length)}}` : data;
}

/** The event of a compact frame, as the journal has it. */
function whole(frames: FrameDecoder, data: string): string {
  const event = frames(data);
  return full(JSON.stringify(event), event.type);
}
