import { limits } from '../../../src/domain/limits.ts';
import type { Observation } from '../observation.ts';
import { refusalsOf } from '../world/files.ts';
import { factsOf } from './invariant.ts';
import type { Invariant } from './invariant.ts';
import { receivedIn } from './received.ts';

/** Nothing in a history takes this long. */
const AN_HOUR_S = 3_600;

export const everythingEnds: Invariant = {
  name: 'everything ends',
  holds:
    'Every accepted message has one run, and every run ends, without a client that helps. None is refused without a reason.',
  *check(seen) {
    if (seen.stuck !== null) yield seen.stuck;
    yield* refusedWithoutReason(seen);
    if (seen.isDeleted || seen.stuck !== null) return;
    for (const { run, status, isOpen } of seen.runs) {
      if (isOpen || !['completed', 'failed', 'cancelled'].includes(status)) yield `run ${run} is ${status}`;
    }
    const answered = new Map<number, number>();
    const received = receivedIn(seen.events);
    for (const { message, run } of factsOf(seen, 'message_answered')) {
      if (run === null) continue;
      const own = received.find((one) => one.run === run && one.message === message);
      // It has the message, or had it while it waited, when the client asked.
      if (own?.isTaken === true || own?.hasWaited === true) continue;
      const before = answered.get(message);
      if (before !== undefined && before !== run)
        yield `message ${message} was answered with the runs ${before} and ${run}`;
      answered.set(message, run);
      if (seen.messageOf.get(run) !== message) yield `message ${message} was accepted as run ${run}, which is lost`;
    }
    for (const [message, runs] of Map.groupBy(seen.messageOf, ([, message]) => message)) {
      if (seen.history.messages[message]?.type !== 'message') continue;
      if (runs.length > 1) yield `message ${message} has ${runs.length} runs`;
    }
    for (const event of seen.events) {
      if (event.type === 'budget_exceeded' && event.data.budget === 'seconds' && event.data.limit >= AN_HOUR_S) {
        yield `${event.run_id} waited for nothing until its time was used up`;
      }
    }
    const ends = new Map<string, number>();
    for (const { type, run_id: run } of seen.events) {
      if (/^agent_(completed|failed|cancelled)$/.test(type)) ends.set(run, (ends.get(run) ?? 0) + 1);
    }
    for (const [run, count] of ends) if (count > 1) yield `${run} ended ${count} times`;
  },
};

/** A message is refused only if there is a reason for it in the history. */
function* refusedWithoutReason(seen: Observation): Generator<string> {
  const { messages, faults } = seen.history;
  for (const { message, code, at } of factsOf(seen, 'message_answered')) {
    const isReason =
      code === 'accepted' ||
      (code === 'run_in_progress' && messages[message]?.ifBusy === 'reject' && messages.length > 1) ||
      (code === 'invalid_request' && hasNoMessage(seen, message)) ||
      (code === 'queue_full' && messages.length > limits.queuedMessages) ||
      (code === 'session_full' && faults.some(({ type }) => type === 'full_disk')) ||
      (code === 'unknown_session' && (seen.isDeleted || isExpired(seen, at))) ||
      refusalsOf(messages[message]?.files ?? []).has(code);
    if (!isReason) yield `message ${message} was refused with ${code}`;
  }
}

/** Whether the session had not been used until then for the time after which it is deleted: a crash interrupts that. */
function isExpired({ history, events }: Observation, at: number): boolean {
  const { expiryMs } = history.agent;
  const used = Math.max(0, ...events.map(({ timestamp }) => timestamp).filter((timestamp) => timestamp < at));
  return expiryMs !== null && at - used >= expiryMs;
}

/** Whether it shall repeat the message of a run that was started by something else. */
function hasNoMessage(seen: Observation, message: number): boolean {
  const how = seen.history.messages[message]?.branch?.how;
  const of = factsOf(seen, 'branch_sent').find((fact) => fact.message === message)?.of ?? 0;
  return (how === 'retry' || how === 'edit') && seen.places.get(of)?.mark === null;
}
