import { isTextPatch } from '../../../src/domain/event.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { History } from '../history.ts';
import type { Invariant } from './invariant.ts';

/** A patch that a reader got: up to where it reaches, and when. */
interface Patch {
  readonly end: number;
  readonly at: number;
}

const NO_TIME: ReadonlySet<string> = new Set(['clock', 'full_disk', 'write', 'statement']);
/** A turn may begin later than its timer. */
const TURN_MS = 50;

/** How long text can stay unsaved in a history; infinite if the hosts' clock or the disk does not allow a statement. */
function mostMs({ faults }: History): number {
  if (faults.some(({ type }) => NO_TIME.has(type))) return Infinity;
  const syncMs = faults.map((fault) => (fault.type === 'slow_disk' ? fault.ms : 0));
  return limits.unsavedTextLaterMs + TURN_MS + Math.max(0, ...syncMs) * 2;
}

export const savedText: Invariant = {
  name: 'saved text',
  holds:
    'A crash loses the end of a thought or of bare text only: less than what is saved at once, and nothing that readers had for longer than text stays unsaved.',
  *check({ history, readers, events, facts }) {
    const ends = facts.flatMap((fact) => (fact.type === 'host_ended' ? [fact.at] : []));
    const most = mostMs(history);
    const stored = new Map<number, string>();
    for (const event of events) {
      // In a response, values take the place of references.
      if (event.type !== 'thought_completed' && event.type !== 'text_completed') continue;
      if (event.data.cut === true) stored.set(event.data.segment, event.data.content);
    }
    for (const { name, frames } of readers) {
      const lost = new Map<number, Patch[]>();
      for (const { event } of frames) {
        if (!isTextPatch(event)) continue;
        const { segment, offset, delta } = event.data;
        const text = stored.get(segment);
        const end = offset + delta.length;
        if (text === undefined || end <= text.length) continue;
        lost.set(segment, [...(lost.get(segment) ?? []), { end, at: event.timestamp }]);
      }
      for (const [segment, patches] of lost) {
        const chars = Math.max(...patches.map(({ end }) => end)) - (stored.get(segment)?.length ?? 0);
        if (chars >= limits.unsavedTextChars) yield `${name}: ${chars} characters of block ${segment} were lost`;
        for (const { at } of patches) {
          const ms = (ends.find((end) => end >= at) ?? at) - at;
          if (ms > most) yield `${name}: text of block ${segment} was lost ${ms} ms after it was read`;
        }
      }
    }
  },
};
