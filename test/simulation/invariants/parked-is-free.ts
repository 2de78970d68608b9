import { factsOf } from './invariant.ts';
import type { Invariant } from './invariant.ts';

export const parkedIsFree: Invariant = {
  name: 'parked is free',
  holds: 'A session that waits for people and clients only holds no timer and does not keep its host.',
  *check(seen) {
    for (const { at, timers, holds } of factsOf(seen, 'parked')) {
      if (timers > 0 || holds > 0)
        yield `at ${at} ms, a waiting session has ${timers} timers and keeps its host ${holds} times`;
    }
  },
};
