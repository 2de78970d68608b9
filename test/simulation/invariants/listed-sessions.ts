import type { Invariant } from './invariant.ts';

export const listedSessions: Invariant = {
  name: 'listed sessions',
  holds: 'At the end, the directory has exactly the last state of the session, or nothing if it was deleted.',
  *check({ listing }) {
    if (listing === null) return;
    const { expected, listed } = listing;
    if (expected === null) {
      for (const { incarnation, entry } of listed) yield `${incarnation} was deleted, and is listed as ${shown(entry)}`;
      return;
    }
    if (listed.length === 0) yield `${expected.incarnation} is not listed (expected: ${shown(expected.entry)})`;
    for (const { incarnation, entry } of listed) {
      if (incarnation !== expected.incarnation) yield `${incarnation} was deleted, and is listed as ${shown(entry)}`;
      else if (shown(entry) !== shown(expected.entry))
        yield `${incarnation} is listed as ${shown(entry)} (expected: ${shown(expected.entry)})`;
    }
  },
};

function shown(entry: unknown): string {
  return JSON.stringify(entry);
}
