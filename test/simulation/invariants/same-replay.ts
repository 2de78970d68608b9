import { factsOf } from './invariant.ts';
import type { Invariant } from './invariant.ts';

export const sameReplay: Invariant = {
  name: 'same replay',
  holds: 'Another host, and a replay of every record, leads to the same state and writes nothing.',
  *check(seen) {
    for (const { when, before, after } of seen.replacements) {
      const [first, second] = [JSON.stringify(before), JSON.stringify(after)];
      if (first !== second) yield `${when}: ${first} became ${second}`;
    }
    for (const { at, message } of factsOf(seen, 'work_failed')) yield `at ${at} ms, the engine failed: ${message}`;
  },
};
