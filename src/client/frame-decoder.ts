/** Restores the events of one connection from compact frames (docs/journal.md). Full frames pass unchanged. */
import type { SessionEvent } from '../domain/event.ts';

/** The type of a text patch; with the ending, of the event that closes its block. */
export const BLOCK_TYPE = /^(thought|text|response)(_completed)?$/;

/** An event with the members that frames leave out. */
interface Loose {
  readonly type: string;
  readonly session_id?: string;
  readonly run_id?: string;
  readonly iteration?: number;
  readonly timestamp: number;
  readonly data: { segment: number; offset: number; delta: string; content?: unknown; response?: unknown };
}

export class FrameDecoder {
  #last = {} as Loose;
  /** The texts of open blocks, by segment. */
  readonly #texts = new Map<number, string>();
  /** The text of the last block that was closed. */
  #answer: unknown;

  /** @param text the data of the next frame. @throws if it is damaged: the next connection begins with a complete frame */
  decode(text: string): SessionEvent {
    const { type: lastType, session_id, run_id, iteration, timestamp, data: last } = this.#last;
    const frame = JSON.parse(text) as readonly [number, string] | (Loose & { readonly t?: number });
    const { t = 0, ...rest } =
      'length' in frame
        ? {
            type: lastType,
            t: frame[0],
            data: { segment: last.segment, offset: last.offset + last.delta.length, delta: frame[1] },
          }
        : frame;
    const { type, data } = rest as Loose;
    const [, patch, end] = BLOCK_TYPE.exec(type) ?? [];
    const sent = this.#texts.get(data.segment) ?? '';
    if (end !== undefined) {
      if (typeof data.content === 'number') data.content = sent;
      this.#answer = data.content;
      this.#texts.delete(data.segment);
    } else if (patch !== undefined) {
      this.#texts.set(data.segment, sent.slice(0, data.offset) + data.delta);
    }
    if (typeof data.response === 'number') data.response = this.#answer;
    const head = { seq: null, type, session_id, run_id, iteration, timestamp: timestamp + t };
    // Text patches have no second name of their type.
    const names = patch === undefined || end !== undefined ? { event_type: type } : {};
    this.#last = { ...head, ...rest, ...names } as Loose;
    return this.#last as unknown as SessionEvent;
  }
}
