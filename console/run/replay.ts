/**
 * Earlier moments of a run.
 *
 * Invariants:
 *  1. A later moment continues from the one before; only an earlier one starts over.
 *  2. While it plays, time between two events passes as it did, but never longer than `limits.replayGapMs`.
 */
import type { SessionEvent } from '../../src/client/index.ts';
import * as limits from '../parts/limits.ts';
import { Trace } from './trace.ts';

export class Replay {
  readonly #events: readonly SessionEvent[];
  #trace = new Trace();
  #length = 0;

  /** @param events journaled events in order; more may be appended */
  constructor(events: readonly SessionEvent[]) {
    this.#events = events;
  }

  /** The trace after the event with this number. A later call may change it or return another. */
  at(seq: number): Trace {
    if (seq < this.#trace.lastSeq) {
      this.#trace = new Trace();
      this.#length = 0;
    }
    for (const event of this.#events.slice(this.#length, positionOf(this.#events, seq) + 1)) {
      this.#trace.apply(event);
      this.#length += 1;
    }
    return this.#trace;
  }
}

/** The position of the last event up to `seq`; 0 if there is none. */
export function positionOf(events: readonly SessionEvent[], seq: number): number {
  return Math.max(
    0,
    events.findLastIndex((event) => (event.seq ?? 0) <= seq),
  );
}

/**
 * Where a replay is after some more time.
 *
 * @param from position of the event that is shown
 * @param ms milliseconds since it was shown, at the speed of the replay
 * @returns the position of the next one to show, and the time that is left
 */
export function play(events: readonly SessionEvent[], from: number, ms: number): { position: number; restMs: number } {
  let position = from;
  let restMs = ms;
  for (;;) {
    const next = events[position + 1];
    if (next === undefined) return { position, restMs: 0 };
    const gap = Math.min(limits.replayGapMs, next.timestamp - (events[position]?.timestamp ?? 0));
    if (gap > restMs) return { position, restMs };
    restMs -= Math.max(0, gap);
    position += 1;
  }
}
