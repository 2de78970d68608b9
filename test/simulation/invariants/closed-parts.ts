import type { SessionEvent } from '../../../src/domain/event.ts';
import type { Invariant } from './invariant.ts';

export const closedParts: Invariant = {
  name: 'closed parts',
  holds:
    'Every frame is one that a client of its protocol expects there, nothing is asked that the request has answered, and what a stream has begun is ended before the stream.',
  *check({ clients, events }) {
    const expired = expiredRequests(events);
    for (const { name, streams } of clients) {
      for (const [at, { asked, answered, end, reading }] of streams.entries()) {
        const stream = `${name}, stream ${at} (${asked})`;
        for (const mistake of reading.mistakes) yield `${stream}: ${mistake}`;
        const open = new Set([...reading.calls.map(({ id }) => id), ...reading.approvals]);
        // An answer at the moment of the expiry is too late, and the request is shown until its end is recorded.
        for (const id of answered) if (open.has(id) && !expired.has(id)) yield `${stream}: it asks for ${id} again`;
        if (end !== 'ended') continue;
        for (const open of reading.open) yield `${stream}: ${open} has no end`;
      }
    }
  },
};

/** Approvals that ended without a decision, although their runs went on: their answers did not count. */
function expiredRequests(events: readonly SessionEvent[]): ReadonlySet<string> {
  const requested = new Map<string, string>();
  const expired = new Set<string>();
  for (const event of events) {
    const action = `${event.run_id} ${event.iteration} ${event.action_id ?? ''}`;
    if (event.type === 'approval_requested') requested.set(action, event.data.approval_id);
    if (event.type === 'approval_resolved') requested.delete(action);
    const id = requested.get(action);
    if (event.type !== 'action_failed' || event.data.error.code !== 'approval_denied' || id === undefined) continue;
    expired.add(id);
  }
  return expired;
}
