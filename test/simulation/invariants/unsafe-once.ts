import type { Observation } from '../observation.ts';
import { placeOf, scriptOf, SHARED, sharedToken } from '../script.ts';
import { factsOf, rerunsOf, runOf, runOfKey } from './invariant.ts';
import type { Invariant } from './invariant.ts';

const UNSAFE: ReadonlySet<string> = new Set(['unsafe', 'late', 'python', 'code']);

export const unsafeOnce: Invariant = {
  name: 'unsafe once',
  holds:
    'The work of an unsafe action is never done twice, nor for the same idempotency key; a child is started once for each attempt.',
  *check(seen) {
    yield* doneAgain(seen);
    const done = new Map<string, number>();
    const keys = new Map<string, string>();
    for (const { target, key, attempt, token } of factsOf(seen, 'effect')) {
      // The key of an action is what its target may use to detect repetitions.
      const ofRun = `${runOfKey(key) ?? 'feed'} ${token}`;
      const first = keys.get(ofRun) ?? key;
      keys.set(ofRun, first);
      if (first !== key && placeOf(token) !== null) yield `${token} (${target}) was called as ${first} and as ${key}`;
      const id = UNSAFE.has(target) ? key : target === 'child' ? `${key}/${attempt}` : null;
      if (id === null) continue;
      const times = (done.get(id) ?? 0) + 1;
      done.set(id, times);
      if (times > 1) yield `${token} (${target}) was done ${times} times`;
    }
  },
};

/** Of the unsafe actions with the same key and parameters, none does its work after one of them has completed (P6). */
function* doneAgain({ facts, events, history }: Observation): Generator<string> {
  const completed = new Set<string>();
  const reruns = rerunsOf(events);
  for (const fact of facts) {
    if (
      fact.type === 'effect' &&
      UNSAFE.has(fact.target) &&
      completed.has(fact.token) &&
      !reruns.has(runOfKey(fact.key) ?? 0)
    ) {
      yield `${fact.key} (${fact.target}) was done after an action with the same idempotency key had completed`;
    }
    if (fact.type !== 'published' || fact.event.type !== 'action_completed' || reruns.has(runOf(fact.event))) continue;
    const script = scriptOf(history.messages, fact.event.action_id);
    if (script?.key === SHARED) completed.add(sharedToken(script.target));
  }
}
