import { encodeEvent } from '../../../src/domain/event.ts';
import { factsOf } from './invariant.ts';
import type { Invariant } from './invariant.ts';

/** Targets that may start while their start is being written: a second execution does no harm. */
const EARLY: ReadonlySet<string> = new Set(['pure', 'idempotent']);

export const recordedFirst: Invariant = {
  name: 'recorded first',
  holds: 'What readers see is on disk, and stays there; an action that may not run twice starts after its record.',
  *check(seen) {
    for (const { event, isDurable } of factsOf(seen, 'published')) {
      if (!isDurable) yield `event ${event.seq} (${event.type}) was sent before it was on disk`;
    }
    for (const { token, target, isRecorded } of factsOf(seen, 'effect')) {
      if (!isRecorded && !EARLY.has(target)) yield `${token} (${target}) started before its start was on disk`;
    }
    if (!seen.isWhole) return;
    for (const { event } of factsOf(seen, 'published')) {
      const kept = seen.events[(event.seq ?? 0) - 1];
      if (kept === undefined) yield `event ${event.seq} (${event.type}) was sent and is not in the journal`;
      else if (encodeEvent(kept) !== encodeEvent(event)) {
        yield `event ${event.seq} was sent as ${encodeEvent(event)} and is stored as ${encodeEvent(kept)}`;
      }
    }
  },
};
