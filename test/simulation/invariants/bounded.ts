import type { Invariant } from './invariant.ts';
import { actionsOf, textOf } from '../script.ts';
import type { History } from '../history.ts';
import { limits } from '../../../src/domain/limits.ts';

/** Rows of the recovery notes: one for each run and feed. */
const FEEDS = 1;
/** Events outside of runs: changes of a feed. */
const FEED_EVENTS = 20;

export const bounded: Invariant = {
  name: 'bounded',
  holds: 'Rows and timers stay within what the history can need, and nothing is left at the end.',
  *check({ history, sizes, runs, events }) {
    if (sizes === null) return;
    const { rows, mostTimers, timersLeft, holdsLeft, staleNotes, orphans } = sizes;
    if (orphans > 0) yield `${orphans} chunk rows belong to no row`;
    if (holdsLeft > 0) yield `the host is kept ${holdsLeft} times at the end`;
    const written = history.messages.flatMap(({ generations }) => generations.flatMap(actionsOf)).length;
    const actions = written + history.messages.filter(({ branch }) => branch?.how === 'rerun').length;
    const received = events.filter(({ type }) => type === 'message_received').length;
    if ((rows['steered'] ?? 0) > received) yield `${rows['steered']} rows of ${received} received messages`;
    // Each action has a timeout or a retry; each run its time budget and its stream; the rest is for readers and feeds.
    const timers = actions * 2 + history.messages.length * 6 + history.requests.length * 3 + 20;
    if (mostTimers > timers) yield `${mostTimers} timers at once (expected: at most ${timers})`;
    if (timersLeft > timers) yield `${timersLeft} timers are left`;
    if (staleNotes > 0) yield `${staleNotes} notes about recoveries of runs that have ended`;
    const notes = rows['taken_up'] ?? 0;
    if (notes > runs.length + FEEDS) yield `${notes} notes about recoveries of ${runs.length} runs`;
    const perRun = 60 + actions * 12;
    if (events.length > runs.length * perRun + FEED_EVENTS) yield `${events.length} events of ${runs.length} runs`;
    const inputs = mostInputRows(history);
    if ((rows['inputs'] ?? 0) > inputs) yield `${rows['inputs']} rows of inputs (expected: at most ${inputs})`;
    if ((rows['outcomes'] ?? 0) > actions) yield `${rows['outcomes']} stored outcomes of ${actions} actions`;
    if ((rows['variables'] ?? 0) > actions) yield `${rows['variables']} variables of ${actions} actions`;
  },
};

/** Text without an event is written when there is enough of it, or after some time; more rows at the ends of hosts. */
function mostInputRows({ messages, faults }: History): number {
  const rows = messages.flatMap(({ generations }, message) =>
    generations.map((script, generation) => {
      const { length } = textOf(message, generation, script);
      const takesMs = (length / script.pieceChars + 2) * script.gapMs;
      return length / limits.unsavedTextChars + takesMs / limits.unsavedTextLaterMs + 3;
    }),
  );
  return Math.ceil(rows.reduce((sum, count) => sum + count, 0)) + messages.length * 4 + faults.length * 2;
}
