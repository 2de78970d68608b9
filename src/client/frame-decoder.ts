/** Restores the events of one connection from compact frames (docs/journal.md). Full frames pass unchanged. */
import type { SessionEvent } from '../domain/event.ts';

/** The type of a text patch; with the ending, of the event that closes its block. */
export const BLOCK_TYPE = /^(thought|text|response)(_completed)?$/;

/** What frames leave out; patches have a `delta`. */
interface Loose {
  readonly type: string;
  readonly session_id?: string;
  readonly run_id?: string;
  readonly iteration?: number;
  readonly timestamp: number;
  readonly data: { offset: number; delta: string; content?: unknown; response?: unknown };
}

/** Restores the next event. Throws if the frame is damaged: the next connection begins with a complete one. */
export type FrameDecoder = (json: string) => SessionEvent;

/** @returns the decoder of one connection, for the data of each frame in order */
export function frameDecoder(): FrameDecoder {
  let event = {} as Loose;
  /** The text of the last block, as far as it was sent. */
  let text = '';
  return (json) => {
    const { type: lastType, session_id, run_id, iteration, timestamp, data: last } = event;
    const frame = JSON.parse(json) as readonly [number, string] | (Loose & { readonly t?: number });
    const { t = 0, ...rest } =
      'length' in frame
        ? {
            type: lastType,
            t: frame[0],
            data: { ...last, offset: last.offset + last.delta.length, delta: frame[1] } as Loose['data'],
          }
        : frame;
    const { type, data } = rest;
    const isPatch = typeof data.delta === 'string';
    if (isPatch) text = text.slice(0, data.offset) + data.delta;
    if (typeof data.content === 'number') data.content = text;
    if (typeof data.response === 'number') data.response = text;
    const head = { seq: null, type, session_id, run_id, iteration, timestamp: timestamp + t };
    event = { ...head, ...rest } as Loose;
    // Text patches have no second name of their type.
    if (!isPatch) event = { ...event, event_type: type } as Loose;
    return event as unknown as SessionEvent;
  };
}
