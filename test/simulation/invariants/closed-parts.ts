import type { Invariant } from './invariant.ts';

export const closedParts: Invariant = {
  name: 'closed parts',
  holds:
    'Every frame is one that a client of its protocol expects there, nothing is asked that the request has answered, and what a stream has begun is ended before the stream.',
  *check({ clients }) {
    for (const { name, streams } of clients) {
      for (const [at, { asked, answered, end, reading }] of streams.entries()) {
        const stream = `${name}, stream ${at} (${asked})`;
        for (const mistake of reading.mistakes) yield `${stream}: ${mistake}`;
        const open = new Set([...reading.calls.map(({ id }) => id), ...reading.approvals]);
        for (const id of answered) if (open.has(id)) yield `${stream}: it asks for ${id} again`;
        if (end !== 'ended') continue;
        for (const open of reading.open) yield `${stream}: ${open} has no end`;
      }
    }
  },
};
