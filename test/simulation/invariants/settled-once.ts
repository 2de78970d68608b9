import type { SessionEvent } from '../../../src/domain/event.ts';
import { isJsonObject, parseJson } from '../../../src/domain/json.ts';
import type { Fact, Observation } from '../observation.ts';
import { actionOf, endsAction, factsOf } from './invariant.ts';
import type { Invariant } from './invariant.ts';

/** Answers for calls that were shown. Another message may be in progress, and the session may be deleted. */
const POSSIBLE: ReadonlySet<string> = new Set(['accepted', 'call_settled', 'run_in_progress']);

export const settledOnce: Invariant = {
  name: 'settled once',
  holds:
    'A call of a client is settled once, before its action ends; a result that was accepted is on disk, is that of the action, and is accepted again.',
  *check(seen) {
    const open = new Map<string, string>();
    const settled = new Set<string>();
    const actions = new Map<string, string>();
    const ends = new Map<string, SessionEvent>();
    for (const event of seen.events) {
      const action = actionOf(event);
      if (event.type === 'client_tool_called') {
        if (actions.has(event.data.call_id)) yield `${action} was called twice`;
        open.set(action, event.data.call_id);
        actions.set(event.data.call_id, action);
      } else if (event.type === 'client_tool_settled') {
        if (settled.has(event.data.call_id)) yield `the call of ${action} was settled twice`;
        if (!open.delete(action)) yield `the call of ${action} was settled and was not open`;
        settled.add(event.data.call_id);
      } else if (endsAction(event)) {
        if (open.has(action)) yield `${action} has ended, and its call is open`;
        ends.set(action, event);
      }
    }
    for (const { call, code } of factsOf(seen, 'wrong_call')) {
      if (!actions.has(call) && code === 'accepted')
        yield `a result for the call ${call} was accepted, which was not shown`;
    }
    const answers = factsOf(seen, 'call_answered');
    for (const answer of answers) {
      const { call, code } = answer;
      // A result that could not be written can be posted again.
      const isUnwritten = code === 'storage_unavailable' && hasFailed(seen, answer);
      if (!seen.isDeleted && !isUnwritten && !POSSIBLE.has(code))
        yield `the result of ${call} was refused with ${code}`;
    }
    const accepted = Map.groupBy(
      answers.filter(({ code }) => code === 'accepted'),
      ({ call }) => call,
    );
    for (const [call, facts] of accepted) {
      const results = new Set(facts.map(({ result }) => result));
      if (results.size > 1) yield `${results.size} results of ${call} were accepted`;
      for (const { code, result } of answers.filter((answer) => answer.call === call && results.has(answer.result))) {
        if (code === 'call_settled')
          yield `the result ${result} of ${call} was accepted, and posted again it was refused`;
      }
      // The storage of a deleted session is empty.
      if (!seen.isDeleted && facts.some(({ isRecorded }) => isRecorded === false)) {
        yield `a result of ${call} was accepted before it was on disk`;
      }
      const end = ends.get(actions.get(call) ?? '');
      const [first] = facts;
      if (seen.isWhole && first !== undefined && !isOf(first.result, end)) {
        yield `the result ${first.result} of ${call} was accepted, and its action ended with ${JSON.stringify(end?.data)}`;
      }
    }
  },
};

/** Whether the disk has failed, or was full, since the host that answers has started. */
function hasFailed({ facts, history }: Observation, answer: Fact): boolean {
  const before = facts.slice(0, facts.indexOf(answer));
  const start = before.findLastIndex(({ type }) => type === 'host_started');
  const startedAt = before[start]?.at ?? 0;
  return (
    before.slice(start + 1).some(({ type }) => type === 'disk_failed') ||
    history.faults.some(
      (fault) => fault.type === 'full_disk' && fault.at <= answer.at && fault.at + fault.forMs >= startedAt,
    )
  );
}

function isOf(result: string, end: SessionEvent | undefined): boolean {
  const posted = parseJson(result);
  if (!isJsonObject(posted)) return false;
  if (end?.type === 'action_completed') return JSON.stringify(end.data.output) === JSON.stringify(posted['output']);
  return (
    end?.type === 'action_failed' &&
    isJsonObject(posted['error']) &&
    posted['error']['message'] === end.data.error.message
  );
}
