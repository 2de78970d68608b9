import { encodeEvent } from '../../../src/domain/event.ts';
import type { Invariant } from './invariant.ts';

export const sameEvents: Invariant = {
  name: 'same events',
  holds: 'Events are numbered without gaps, and every reader gets the same ones in this order, each once.',
  *check({ events, readers, isWhole, isDeleted }) {
    for (const [at, { seq }] of events.entries()) {
      if (isWhole && seq !== at + 1) yield `event ${seq} is at place ${at + 1}`;
    }
    const stored = new Map(events.map((event) => [event.seq, event]));
    for (const { name, from, frames } of readers) {
      let last = from;
      for (const { event, text } of frames) {
        if (event.seq === null) continue;
        if (event.seq !== last + 1) yield `${name} got event ${event.seq} after ${last}`;
        last = event.seq;
        const original = stored.get(event.seq);
        if (original !== undefined && encodeEvent(original) !== text)
          yield `${name} got another event ${event.seq}: ${text}`;
        if (original === undefined && isWhole) yield `${name} got event ${event.seq}, which is not stored`;
      }
      // A reader that stays connected has everything at the end.
      if (isWhole && !isDeleted && frames.length > 0 && last < events.length - LATE)
        yield `${name} stayed behind at ${last} of ${events.length}`;
    }
  },
};

/** Events that a reader may not have had time to read at the end. */
const LATE = 20;
