import { isTextPatch } from '../../../src/domain/event.ts';
import type { SessionEvent } from '../../../src/domain/event.ts';
import type { Invariant } from './invariant.ts';

type Closing = Extract<SessionEvent, { type: 'thought_completed' | 'text_completed' | 'response_completed' }>;

function closes(event: SessionEvent): event is Closing {
  return event.type === 'thought_completed' || event.type === 'text_completed' || event.type === 'response_completed';
}

export const foldedText: Invariant = {
  name: 'folded text',
  holds:
    'The patches of a block, applied in order, give its stored text; only a crash leaves one without an end, and marks it.',
  *check({ readers, events, isDeleted, stuck, facts }) {
    for (const { name, frames } of readers) {
      let texts = new Map<number, string>();
      let connection = 0;
      for (const { event, connection: own } of frames) {
        // Patches are not repeated: a new connection begins with the whole text of open blocks.
        if (own !== connection) texts = new Map();
        connection = own;
        if (isTextPatch(event)) {
          const { segment, offset, delta } = event.data;
          const text = texts.get(segment) ?? '';
          if (offset > text.length)
            yield `${name}: a patch of block ${segment} begins at ${offset}, after ${text.length}`;
          texts.set(segment, text.slice(0, offset) + delta);
        } else if (closes(event)) {
          const { segment, content } = event.data;
          const text = texts.get(segment) ?? '';
          if (text !== content)
            yield `${name}: block ${segment} was read as ${quote(text)} and is stored as ${quote(content)}`;
        }
      }
    }
    if (isDeleted || stuck !== null) return;
    const wasLost = facts.some(({ type }) => type === 'host_ended');
    const open = new Set<number | null>();
    for (const event of events) {
      if (event.type === 'thought_started' || event.type === 'text_started' || event.type === 'response_started') {
        open.add(event.seq);
      }
      if (!closes(event)) continue;
      if (!open.delete(event.data.segment)) yield `block ${event.data.segment} was closed and was not open`;
      if (event.data.cut === true && !wasLost)
        yield `block ${event.data.segment} is marked as cut, and no host was lost`;
    }
    for (const segment of open) yield `block ${segment} has no end`;
  },
};

const quote = (text: string): string => JSON.stringify(text.length > 120 ? `${text.slice(0, 120)}…` : text);
