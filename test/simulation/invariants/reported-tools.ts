import type { Observation } from '../observation.ts';
import { actionOf, endsAction } from './invariant.ts';
import type { Invariant } from './invariant.ts';

export const reportedTools: Invariant = {
  name: 'reported tools',
  holds:
    'A code tool whose host ended while it ran, or while its schema parsed, is reported before its action ends, so that one which ends hosts is set aside; no other is.',
  *check(seen) {
    yield* unreported(seen);
    yield* reportedWithoutNeed(seen);
  },
};

const TOOL = 'code';
/** The engine's words for an attempt that a host has lost. */
const LOST = /was running when its host was restarted/;

function* unreported({ facts }: Observation): Generator<string> {
  let reports = 0;
  for (const fact of facts) {
    if (fact.type === 'tool_reported') reports += 1;
    if (fact.type !== 'published' || fact.event.type !== 'action_failed' || fact.event.action_name !== TOOL) continue;
    if (!LOST.test(fact.event.data.error.message)) continue;
    if (reports === 0) yield `${actionOf(fact.event)} was lost with its host, and its tool is not reported`;
    // A report whose host ended as well is made again.
    else reports -= 1;
  }
}

function* reportedWithoutNeed({ facts, events }: Observation): Generator<string> {
  const open = new Set(
    events.filter(({ type, action_name: name }) => type === 'action_queued' && name === TOOL).map(actionOf),
  );
  const hosts = { ended: 0 };
  for (const fact of facts) {
    if (fact.type === 'host_ended') hosts.ended += 1;
    if (fact.type === 'published' && endsAction(fact.event)) open.delete(actionOf(fact.event));
    if (fact.type !== 'tool_reported') continue;
    if (fact.name !== TOOL) yield `${fact.name} was reported, and is no code tool`;
    if (hosts.ended === 0) yield `${fact.name} was reported before any host had ended`;
    if (open.size === 0) yield `${fact.name} was reported while none of its actions was open`;
  }
}
