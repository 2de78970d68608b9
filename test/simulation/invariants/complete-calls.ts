import { placeOf } from '../script.ts';
import { factsOf } from './invariant.ts';
import type { Invariant } from './invariant.ts';

/** Of the feed's source, and of actions that share a result. */
const OTHERS = /^(feed|shared_\w+)$/;
/** On the real system, the token of a child's call starts with this. */
const CHILD = /^child-/;

export const completeCalls: Invariant = {
  name: 'complete calls',
  holds:
    'A target gets the parameters that the model has written last, never a part of them or what stood there before.',
  *check(seen) {
    for (const { token, target, key } of factsOf(seen, 'effect')) {
      if (placeOf(token.replace(CHILD, '')) === null && !OTHERS.test(token))
        yield `${target} was called without its parameters as ${key}`;
    }
  },
};
