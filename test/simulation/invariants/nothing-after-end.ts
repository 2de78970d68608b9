import { byRun, factsOf, rerunsOf, runOfKey } from './invariant.ts';
import type { Invariant } from './invariant.ts';

/** Finishes after which only what has started goes on (P15). */
const BAD: ReadonlySet<string> = new Set(['content_filter', 'error', 'throws', 'silent', 'unknown']);
/** Finishes after which actions that wait for the generation are cancelled (S14). */
const SHORT: ReadonlySet<string> = new Set([...BAD, 'length']);

export const nothingAfterEnd: Invariant = {
  name: 'nothing after the end',
  holds: 'After a cancel, a deletion or a generation that ended badly, no action starts.',
  *check(seen) {
    for (const [run, events] of byRun(seen.events)) {
      const end = events.findIndex(({ type }) => type === 'agent_cancelled');
      const late = events.slice(end + 1).find(({ type }) => type === 'action_started');
      if (end >= 0 && late !== undefined) yield `run ${run}: ${late.action_id} started after the run was cancelled`;
      yield* startsAfterBadFinish(seen, run, events);
    }
    const { facts } = seen;
    const deleted = facts.findIndex(({ type }) => type === 'deleted');
    for (const fact of deleted < 0 ? [] : facts.slice(deleted)) {
      if (fact.type === 'effect' || fact.type === 'model_called') yield `after the deletion: ${JSON.stringify(fact)}`;
    }
    yield* worksAfterCancel(seen);
    // A cancel that was answered has ended the runs that were open.
    for (const { runs: cancelled } of factsOf(seen, 'cancel_answered')) {
      for (const run of cancelled) {
        const end = seen.runs.find((other) => other.run === run);
        if (end !== undefined && !['cancelled', 'completed', 'failed'].includes(end.status)) {
          yield `run ${run} is ${end.status} after its cancel`;
        }
      }
    }
  },
};

/** A run that was queued or running at an answered cancel calls neither the model nor a target any more. */
function* worksAfterCancel({ facts, messageOf }: Parameters<Invariant['check']>[0]): Generator<string> {
  const cancelled = new Set<number>();
  const runOfMessage = new Map(Array.from(messageOf, ([run, message]) => [message, run]));
  for (const fact of facts) {
    if (fact.type === 'cancel_answered') for (const run of fact.runs) cancelled.add(run);
    const run =
      fact.type === 'model_called'
        ? (fact.of?.run ?? runOfMessage.get(fact.message))
        : fact.type === 'effect'
          ? (runOfKey(fact.key) ?? undefined)
          : undefined;
    if (run !== undefined && cancelled.has(run)) yield `after the cancel: ${JSON.stringify(fact)}`;
  }
}

/** The plan of a generation is written at its end: what starts later starts after the finish. */
function* startsAfterBadFinish(
  seen: Parameters<Invariant['check']>[0],
  run: number,
  events: Parameters<Invariant['check']>[0]['events'],
): Generator<string> {
  const planned = new Set<number>();
  if (rerunsOf(events).size > 0) return;
  for (const event of events) {
    if (event.type === 'plan_generated') planned.add(event.iteration);
    if (event.type !== 'action_started' || event.data.attempt > 1 || !planned.has(event.iteration)) continue;
    const place = placeIn(event.action_id);
    const finish = place === null ? null : finishOf(seen, place);
    if (finish === null) continue;
    if (BAD.has(finish)) yield `run ${run}: ${event.action_id} started after its generation ended with ${finish}`;
    else if (SHORT.has(finish) && event.action_name === 'late') {
      yield `run ${run}: ${event.action_id} waits for its generation and started after ${finish}`;
    }
  }
}

function placeIn(token: string): { readonly message: number; readonly call: number } | null {
  const found = /^m(\d+)g(\d+)a/.exec(token);
  return found === null ? null : { message: Number(found[1]), call: Number(found[2]) };
}

/** How the model ended a generation, if its host lived to see it. */
function finishOf(
  seen: Parameters<Invariant['check']>[0],
  { message, call }: { readonly message: number; readonly call: number },
): string | null {
  if (seen.history.messages[message]?.type !== 'message') return null;
  const delivered = factsOf(seen, 'generation_delivered').find(
    (fact) => fact.message === message && fact.call === call,
  );
  if (delivered === undefined) return null;
  // If the host was lost soon after, the finish may be unknown: the generation was interrupted instead.
  const after = seen.facts.slice(seen.facts.indexOf(delivered));
  const lost = after.findIndex(({ type }) => type === 'host_ended');
  const isProcessed = after.findIndex(({ type }) => type === 'published');
  return lost >= 0 && (isProcessed < 0 || lost < isProcessed) ? null : delivered.finish;
}
