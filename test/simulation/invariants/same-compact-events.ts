import type { Invariant } from './invariant.ts';

export const sameCompactEvents: Invariant = {
  name: 'same compact events',
  holds: 'What a reader decodes from the compact form of its stream is what the full form has, live and replayed.',
  *check({ readers }) {
    for (const { name, frames } of readers) {
      for (const { event, text, compact } of frames) {
        if (compact === text) continue;
        const what = event.seq === null ? `a patch (${event.type})` : `event ${event.seq}`;
        yield `${name} has decoded ${what} as ${compact}, instead of ${text}`;
      }
    }
  },
};
