import { factsOf } from './invariant.ts';
import type { Invariant } from './invariant.ts';
import { messagesOf } from './own-branch.ts';
import { receivedIn } from './received.ts';

export const takenOnce: Invariant = {
  name: 'taken once',
  holds:
    'Every accepted message belongs to exactly one run; one that a run has received is on disk before it is shown, is in each generation that begins after it, and its client gets that run.',
  *check(seen) {
    if (!seen.isWhole || seen.places.size === 0) return;
    const received = receivedIn(seen.events);
    const calls = factsOf(seen, 'model_called');
    for (const [message, script] of seen.history.messages.entries()) {
      if (script.type !== 'message' || script.via !== null) continue;
      const own = [...seen.messageOf].flatMap(([run, one]) => (one === message ? [run] : []));
      const taken = received.filter((one) => one.message === message && one.isTaken).map(({ run }) => run);
      const runs = [...own, ...taken];
      if (runs.length > 1) yield `message ${message} belongs to the runs ${runs.join(', ')}`;
      const answers = factsOf(seen, 'message_answered').filter((one) => one.message === message);
      if (!seen.isDeleted && runs.length === 0 && answers.some(({ code }) => code === 'accepted'))
        yield `message ${message} was accepted and belongs to no run`;
      for (const { run } of answers) {
        if (run === null || runs.includes(run)) continue;
        const hadIt = received.some((one) => one.run === run && one.message === message && one.hasWaited);
        if (!hadIt && !seen.isDeleted)
          yield `message ${message} was answered with run ${run}, and belongs to ${runs.join(', ')}`;
      }
    }
    for (const { run, message, isTaken } of received) {
      const isShown = calls.some(({ of, marks = [] }) => of?.run === run && messagesOf(marks).includes(message));
      const hasSucceeded = seen.runs.some((end) => end.run === run && end.status === 'completed');
      if (isTaken && !isShown && hasSucceeded) yield `run ${run} has received message ${message} and never shows it`;
    }
    for (const { of, marks = [] } of calls) {
      if (of === undefined) continue;
      const start = seen.events.findLast(
        (event) => event.type === 'iteration_started' && event.iteration === of.iteration && isOf(event.run_id, of.run),
      );
      const all = received.filter(({ run }) => run === of.run);
      const expected = all.filter(({ seq }) => seq < (start?.seq ?? 0));
      const shown = messagesOf(marks).filter((one) => all.some(({ message }) => message === one));
      const list = expected.map(({ message }) => message).join(', ');
      if (shown.join(', ') !== list) {
        yield `run ${of.run}, iteration ${of.iteration}, shows the received messages ${shown.join(', ')} (expected: ${list})`;
      }
      const early = expected.find(({ seq }) => seq > of.durableSeq);
      if (early !== undefined) yield `run ${of.run} shows message ${early.message} before it is on disk`;
    }
  },
};

const isOf = (id: string, run: number): boolean => id.endsWith(`_${run}`);
