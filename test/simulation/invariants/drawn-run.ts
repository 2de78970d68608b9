import { boundOf } from '../../../console/run/bound.ts';
import { Layout } from '../../../console/run/layout.ts';
import { Replay } from '../../../console/run/replay.ts';
import { isSettled } from '../../../console/run/trace-types.ts';
import { Trace } from '../../../console/run/trace.ts';
import type { SessionEvent } from '../../../src/domain/event.ts';
import { byRun, endsAction } from './invariant.ts';
import type { Invariant } from './invariant.ts';

/** What the console shows for each end of an action. */
const STATUS: Readonly<Record<string, string>> = {
  action_completed: 'completed',
  action_failed: 'failed',
  action_skipped: 'skipped',
  action_cancelled: 'cancelled',
  action_rejected: 'rejected',
};

export const drawnRun: Invariant = {
  name: 'drawn run',
  holds:
    'The console shows each action of a run once, in a place of its own behind what it depends on, with the end that is journaled; its lower bound is at most the duration, unless the clock jumps.',
  *check({ events, isWhole, history }) {
    if (!isWhole) return;
    // Times of a clock that jumps prove nothing about durations.
    const isMeasured = !history.faults.some(({ type }) => type === 'clock');
    for (const [run, ofRun] of byRun(events)) {
      const trace = new Trace();
      const replay = new Replay(ofRun);
      const layout = new Layout();
      const half = ofRun[Math.floor(ofRun.length / 2)]?.seq ?? 0;
      for (const event of ofRun) {
        trace.apply(event);
        layout.update(trace.actions);
        if (event.seq === half && !isSame(replay.at(half), trace)) yield `run ${run}: a replay up to ${half} differs`;
      }
      if (!isSame(replay.at(ofRun.at(-1)?.seq ?? 0), trace)) yield `run ${run}: a replay of all events differs`;
      yield* statuses(run, ofRun, trace);
      yield* places(run, trace, layout);
      if (!isMeasured || trace.endedAt === null) continue;
      const { boundMs, actualMs } = boundOf(trace, trace.lastAt);
      // Times are whole milliseconds.
      if (boundMs > actualMs + trace.iterations.length)
        yield `run ${run}: the lower bound of ${actualMs} ms is ${boundMs} ms`;
    }
  },
};

function isSame(one: Trace, other: Trace): boolean {
  const shape = ({ status, actions }: Trace): string =>
    JSON.stringify([status, actions.map((action) => [action.key, action.status, action.attempts.length])]);
  return shape(one) === shape(other);
}

function* statuses(run: number, events: readonly SessionEvent[], trace: Trace): Generator<string> {
  const ends = events.filter(endsAction);
  const shown = trace.actions.filter(isSettled);
  if (shown.length !== ends.length) yield `run ${run}: ${shown.length} ends of actions are shown, of ${ends.length}`;
  for (const { type, iteration, action_id: id, seq } of ends) {
    const key = `${iteration}.${id ?? ''}`;
    const action = trace.action(type === 'action_rejected' ? `${key}!${seq ?? ''}` : key);
    if (action?.status !== STATUS[type])
      yield `run ${run}: ${key} is shown as ${action?.status ?? 'missing'} after ${type}`;
  }
}

function* places(run: number, trace: Trace, { places: all }: Layout): Generator<string> {
  const taken = new Set<string>();
  for (const [index, action] of trace.actions.entries()) {
    const place = all[index];
    if (place === undefined) {
      yield `run ${run}: ${action.key} has no place`;
      continue;
    }
    const cell = `${place.column} ${place.row}`;
    if (taken.has(cell)) yield `run ${run}: ${action.key} is drawn over another action`;
    taken.add(cell);
    for (const before of action.dependencies) {
      // A dependency that is declared later was not known when the action got its place.
      if (before.index > index) continue;
      if ((all[before.index]?.column ?? 0) >= place.column)
        yield `run ${run}: ${action.key} is not behind ${before.key}`;
    }
  }
}
