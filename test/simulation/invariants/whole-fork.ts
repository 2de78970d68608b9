import { RUN_END_EVENTS } from '../../../src/domain/event.ts';
import type { SessionEvent } from '../../../src/domain/event.ts';
import type { Observation } from '../observation.ts';
import { byRun, factsOf } from './invariant.ts';
import type { Invariant } from './invariant.ts';

export const wholeFork: Invariant = {
  name: 'whole fork',
  holds:
    'A fork has the events of its branch and no others, with numbers without gaps and blocks of its own; an incomplete one is no session.',
  *check(seen) {
    for (const { exists } of factsOf(seen, 'fork_lost')) if (exists) yield 'a fork that was not completed is a session';
    for (const { run, events, open } of factsOf(seen, 'forked')) {
      const where = `the fork at run ${run}`;
      if (open.length > 0) yield `${where} has open runs: ${open.join(', ')}`;
      const gap = events.findIndex(({ seq }, index) => seq !== index + 1);
      if (gap !== -1) yield `${where} has event ${events[gap]?.seq} at place ${gap + 1}`;
      yield* strangeBlocks(events, where);
      if (seen.isWhole && seen.places.size > 0) yield* otherEvents(seen, { run, events, where });
    }
  },
};

/** Each block of a fork was opened in the fork. */
function* strangeBlocks(events: readonly SessionEvent[], where: string): Generator<string> {
  for (const event of events) {
    const segment = 'segment' in event.data ? event.data.segment : null;
    if (segment === null) continue;
    const opened = events[segment - 1];
    const isOpening = opened !== undefined && /^(thought|text|response)_started$/.test(opened.type);
    if (!isOpening || opened.run_id !== event.run_id)
      yield `${where} closes a block at ${event.seq} that it has not opened`;
  }
}

/** What is compared: everything but numbers and ids that follow from the session. */
function said({ type, iteration, action_id: id, data }: SessionEvent): string {
  const {
    segment: _segment,
    completes: _completes,
    until_run: _until,
    ...rest
  } = data as { segment?: number; completes?: number; until_run?: string };
  return JSON.stringify([type, iteration, id, rest]);
}

function* otherEvents(
  seen: Observation,
  { run, events, where }: { readonly run: number; readonly events: readonly SessionEvent[]; readonly where: string },
): Generator<string> {
  const own = byRun(events);
  const there = byRun(seen.events.filter(({ type }) => type !== 'run_branched'));
  const branch = branchOf(seen, run);
  if (own.size !== branch.length) yield `${where} has ${own.size} runs (expected: ${branch.length})`;
  for (const [index, number] of branch.entries()) {
    const copied = withoutLate(own.get(index + 1) ?? []).map(said);
    const original = withoutLate(there.get(number) ?? []).map(said);
    const other = original.findIndex((text, at) => copied[at] !== text);
    if (other !== -1 || copied.length !== original.length) {
      yield `${where} differs from run ${number} at its event ${other === -1 ? original.length : other}`;
    }
  }
}

const LATE: ReadonlySet<string> = new Set(['context_feed_updated', 'memory_changed']);

/** Periodic feeds of an idle session belong to its newest run, and a summary follows one; both may come after the fork. */
function withoutLate(events: readonly SessionEvent[]): readonly SessionEvent[] {
  const end = events.findIndex(({ type }) => RUN_END_EVENTS.has(type));
  return events.filter(({ type }, at) => end === -1 || at <= end || !LATE.has(type));
}

/** A run and its ancestors, oldest first. */
function branchOf(seen: Observation, run: number): number[] {
  const parent = seen.places.get(run)?.parent ?? 0;
  return parent === 0 || parent >= run ? [run] : [...branchOf(seen, parent), run];
}
