import { actionOf, factsOf } from './invariant.ts';
import type { Invariant } from './invariant.ts';

/** Tools that need an approval in a supervised agent. */
const NEEDS_APPROVAL: ReadonlySet<string> = new Set(['unsafe', 'late', 'code']);

export const approvedFirst: Invariant = {
  name: 'approved first',
  holds: 'An action that needs an approval starts only after it; a decision that was answered counts, and counts once.',
  *check(seen) {
    const { events, history, isWhole } = seen;
    const asked = new Set<string>();
    const approved = new Set<string>();
    const decided = new Map<string, boolean>();
    for (const event of events) {
      const action = actionOf(event);
      if (event.type === 'approval_requested') asked.add(action);
      if (event.type === 'approval_resolved') {
        const { approval_id: id, approved: isApproved } = event.data;
        if (decided.has(id)) yield `${id} was decided twice`;
        decided.set(id, isApproved);
        if (isApproved) approved.add(action);
      }
      if (event.type !== 'action_started') continue;
      const isNeeded = history.agent.supervised && NEEDS_APPROVAL.has(event.action_name ?? '');
      if ((isNeeded || asked.has(action)) && !approved.has(action)) yield `${action} started and was not approved`;
    }
    const answers = factsOf(seen, 'decision_answered').filter(({ code }) => code === 'accepted');
    for (const [id, accepted] of Map.groupBy(answers, ({ approval }) => approval)) {
      if (accepted.length > 1) yield `${accepted.length} decisions about ${id} were accepted`;
      const [first] = accepted;
      if (first?.isRecorded === false) yield `the decision about ${id} was accepted before it was on disk`;
      if (isWhole && first !== undefined && decided.get(id) !== first.approved) {
        yield `the decision about ${id} was accepted, and is not in the journal`;
      }
    }
  },
};
