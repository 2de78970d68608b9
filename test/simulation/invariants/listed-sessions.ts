import type { Invariant } from './invariant.ts';

export const listedSessions: Invariant = {
  name: 'listed sessions',
  holds:
    'At the end, the directory and the index of executions have exactly the last state of the session and of each run, or nothing if it was deleted.',
  *check({ listing }) {
    if (listing === null) return;
    const { expected, listed, expectedRuns, listedRuns } = listing;
    const [wanted, found] = [expectedRuns, listedRuns].map((runs) => runs.map(({ id, status }) => `${id} ${status}`));
    for (const run of wanted ?? []) if (found?.includes(run) !== true) yield `${run} is not in the index of executions`;
    for (const run of found ?? []) if (wanted?.includes(run) !== true) yield `the index of executions has ${run}`;
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
