import type { SessionEvent } from '../../../src/domain/event.ts';
import type { Outcome } from '../protocols/client-protocol.ts';
import type { Invariant } from './invariant.ts';

export const noFalseSuccess: Invariant = {
  name: 'no false success',
  holds:
    'Every stream of another protocol says how it ends; it says that the run has succeeded, failed, was cancelled or waits only if that is so, and that an answer is whole only if it is.',
  *check({ clients, events, isWhole }) {
    for (const { name, runId, streams } of clients) {
      const own = events.filter((event) => event.run_id === runId);
      for (const [at, { asked, end, reading }] of streams.entries()) {
        const stream = `${name}, stream ${at} (${asked})`;
        const { outcome } = reading;
        if (outcome === null && end === 'ended') yield `${stream} does not say how it ends`;
        if (!isWhole || outcome === null || outcome === 'lost') continue;
        const ends = endsOf(own);
        if (!ends.has(outcome)) yield `${stream} ends with "${outcome}", and the run with "${[...ends].join('", "')}"`;
      }
    }
  },
};

/** How streams of a run may end. */
function endsOf(events: readonly SessionEvent[]): Set<Outcome> {
  const ends = new Set<Outcome>();
  const cut = new Set<number>();
  for (const event of events) {
    if (event.type === 'warning' && event.data.code === 'generation_cut') cut.add(event.iteration);
    if (event.type === 'agent_failed') ends.add('failed');
    if (event.type === 'agent_cancelled') ends.add('cancelled');
    // A response with a call is one that waits for its result, also if the call expires or is in the background.
    if (event.type === 'client_tool_called' || event.type === 'approval_requested') ends.add('waiting');
    if (event.type === 'agent_completed') ends.add(cut.has(event.data.iterations) ? 'cut' : 'success');
  }
  return ends;
}
