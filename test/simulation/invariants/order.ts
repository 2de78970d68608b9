import type { SessionEvent } from '../../../src/domain/event.ts';
import type { ActionScript } from '../history.ts';
import { placeOf, scriptOf, tokenOf } from '../script.ts';
import { actionOf, byRun, endsAction, rerunsOf } from './invariant.ts';
import type { Invariant } from './invariant.ts';

export const order: Invariant = {
  name: 'order',
  holds:
    'No action starts before what it depends on has succeeded, before an earlier sync action has ended, or against its condition.',
  *check({ events, history }) {
    const reruns = rerunsOf(events);
    for (const [run, ofRun] of byRun(events)) {
      const ends = new Map<string, SessionEvent>();
      const queued: Queued[] = [];
      const all = ofRun.filter((event) => event.type === 'action_queued');
      for (const event of ofRun) {
        if (event.type === 'action_queued') queued.push(event);
        if (endsAction(event) && event.action_id !== undefined) ends.set(event.action_id, event);
        if (event.type !== 'action_started' || event.data.attempt > 1) continue;
        const own = queued.find(({ action_id: id }) => id === event.action_id);
        if (own === undefined) {
          yield `${actionOf(event)} started before it was accepted`;
          continue;
        }
        const script = scriptOf(history.messages, event.action_id);
        if (script?.when === false && !reruns.has(run)) yield `${actionOf(event)} started, and its condition is false`;
        for (const needed of neededBy(event.action_id, script)) {
          const isKnown = queued.slice(0, queued.indexOf(own)).some(({ action_id: id }) => id === needed);
          if (isKnown && !own.data.depends_on.includes(needed)) yield `${actionOf(event)} does not depend on ${needed}`;
        }
        for (const needed of own.data.depends_on) {
          const end = ends.get(needed);
          if (end === undefined) yield `${actionOf(event)} started before ${needed} had ended`;
          else if (!satisfies(end, scriptOf(history.messages, needed)?.onError === 'skip')) {
            yield `${actionOf(event)} started, and ${needed} is ${end.type}`;
          }
        }
        if (script?.dependsOn !== null) continue;
        for (const barrier of barriersOf(queued, own, all)) {
          if (!ends.has(barrier.action_id))
            yield `${actionOf(event)} started before the barrier ${barrier.action_id} ended`;
        }
      }
    }
  },
};

function satisfies(end: SessionEvent, mayFail: boolean): boolean {
  if (end.type === 'action_completed') return true;
  if (end.type === 'action_skipped') return end.data.reason === 'condition';
  return end.type === 'action_failed' && mayFail;
}

/** The ids that the text of an action names in `depends_on`, or by references to actions before it (P12). */
function neededBy(token: string, script: ActionScript | null): string[] {
  const place = placeOf(token);
  if (place === null || script === null) return [];
  const distances = new Set([...(script.dependsOn ?? []), ...script.refers.filter((distance) => distance < 0)]);
  return [...distances].map((distance) => tokenOf({ ...place, action: place.action + distance }));
}

type Queued = Extract<SessionEvent, { type: 'action_queued' }>;

/** The sync actions before it. None in a generation where a sync action needs a later one: then some do not hold (S4). */
function barriersOf(queued: readonly Queued[], own: Queued, ofRun: readonly Queued[]): Queued[] {
  const before = queued.filter(({ iteration }) => iteration === own.iteration);
  // Their order in the text: an action that needs a later one is queued after it.
  const numberOf = (id: string): number => placeOf(id)?.action ?? 0;
  const isForward = ofRun.some(
    ({ iteration, action_id: id, data }) =>
      iteration === own.iteration && data.depends_on.some((on) => numberOf(on) > numberOf(id)),
  );
  if (isForward) return [];
  return before.slice(0, before.indexOf(own)).filter(({ data }) => data.mode === 'sync');
}
