import { HIDDEN } from '../world/targets.ts';
import type { Invariant } from './invariant.ts';
import { factsOf } from './invariant.ts';

export const redacted: Invariant = {
  name: 'redacted',
  holds: 'No reader and no client of another protocol sees what a pattern of the agent matches.',
  *check(seen) {
    const { readers, clients, events } = seen;
    for (const { name, frames } of readers) {
      for (const { text, event } of frames) if (HIDDEN.test(text)) yield `${name} saw it in ${event.type}`;
    }
    for (const { name, streams, conversation } of clients) {
      const texts = [...streams.map(({ text }) => text), conversation?.text ?? ''];
      if (texts.some((text) => HIDDEN.test(text))) yield `${name} saw it`;
    }
    for (const event of [...events, ...factsOf(seen, 'forked').flatMap((fork) => fork.events)]) {
      if (HIDDEN.test(JSON.stringify(event.data))) yield `it is in ${event.type} ${event.seq ?? ''}`;
    }
  },
};
