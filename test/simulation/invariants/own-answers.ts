import { factsOf } from './invariant.ts';
import type { Invariant } from './invariant.ts';

export const ownAnswers: Invariant = {
  name: 'own answers',
  holds: 'A session that was made again under the same id gets no answer of the earlier one, and no id of it.',
  *check(seen) {
    for (const { key } of factsOf(seen, 'earlier_answer')) yield `${key} is a key of the earlier session`;
  },
};
