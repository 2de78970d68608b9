/**
 * What a reader was given already (J4).
 *
 * Invariants:
 *  1. Each journaled event passes once, in order.
 *  2. The deltas of a block pass once, without a gap, and are its whole text at its closing event. If a crash has cut the
 *     block off, the reader may have more than the journal: then `content` of the closing event counts.
 */
import type { BlockEnd, SessionEvent, TextPatch } from '../domain/event.ts';
import { BLOCK_TYPE } from './frame-decoder.ts';

export class Delivered {
  /** Number of the last journaled event. */
  seq: number;
  /** UTF-16 code units of each open block. */
  readonly #chars = new Map<number, number>();

  constructor(after: number) {
    this.seq = after;
  }

  /** What is new in an event: nothing, the event, the rest of a patch, or a block's missing text and its closing event. */
  take(event: SessionEvent): readonly SessionEvent[] {
    const block = BLOCK_TYPE.exec(event.type);
    if (event.seq === null) return block === null ? [event] : this.#patch(event as TextPatch);
    if (event.seq <= this.seq) return [];
    this.seq = event.seq;
    return block === null ? [event] : this.#end(event as BlockEnd, block[1] as TextPatch['type']);
  }

  #patch(patch: TextPatch): readonly TextPatch[] {
    const { segment, offset, delta } = patch.data;
    const chars = this.#chars.get(segment) ?? 0;
    const end = offset + delta.length;
    // Text after a gap comes with the closing event.
    if (end <= chars || offset > chars) return [];
    this.#chars.set(segment, end);
    if (offset === chars) return [patch];
    return [{ ...patch, data: { ...patch.data, offset: chars, delta: delta.slice(chars - offset) } }];
  }

  #end(end: BlockEnd, type: TextPatch['type']): readonly SessionEvent[] {
    const { session_id, run_id, iteration, timestamp, data } = end;
    const { segment, content } = data;
    const chars = this.#chars.get(segment) ?? 0;
    // Nothing more of it is wanted.
    this.#chars.set(segment, Number.POSITIVE_INFINITY);
    if (content.length <= chars) return [end];
    const rest = { segment, offset: chars, delta: content.slice(chars) };
    return [{ seq: null, type, session_id, run_id, iteration, timestamp, data: rest }, end];
  }
}
