import { actionOf, endsAction } from './invariant.ts';
import type { Invariant } from './invariant.ts';

export const oneEnd: Invariant = {
  name: 'one end',
  holds: 'Every accepted action ends exactly once.',
  *check({ events, isWhole }) {
    const ends = new Map<string, number>();
    for (const event of events) {
      if (event.type === 'action_queued') {
        if (ends.has(actionOf(event))) yield `${actionOf(event)} was accepted twice`;
        ends.set(actionOf(event), 0);
      }
      // Something that was never accepted may have the id of another action.
      else if (endsAction(event) && event.type !== 'action_rejected')
        ends.set(actionOf(event), (ends.get(actionOf(event)) ?? 0) + 1);
    }
    for (const [action, count] of ends) {
      if (count > 1) yield `${action} ended ${count} times`;
      if (count === 0 && isWhole) yield `${action} has no end`;
    }
  },
};
