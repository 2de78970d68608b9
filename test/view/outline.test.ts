/** The view of a run without what may be large (H7). */
import { expect, test } from 'vitest';
import type { SessionEvent } from '../../src/domain/event.ts';
import { storedEvent } from '../../src/domain/event.ts';
import { foldOutline } from '../../src/view/reduce.ts';
import { emptyView } from '../../src/view/run-view.ts';

test('[H7] an outline does not read the output of an action', () => {
  const head = { session_id: 's', run_id: 'r', iteration: 1, timestamp: 1, action_id: 'a', action_name: 'echo' };
  const unreadable = storedEvent({ ...head, seq: 2, type: 'action_completed' }, 'not JSON');
  const queued = { ...head, seq: 1, type: 'action_queued', data: { type: 'tool', mode: 'async', depends_on: [] } };
  const events = [queued as unknown as SessionEvent, unreadable];
  expect(events.reduce((view, event) => foldOutline(view, event), emptyView('r')).actions).toMatchObject([
    { id: 'a', status: 'completed', output: null, seqs: { written: 1, ended: 2 } },
  ]);
});
