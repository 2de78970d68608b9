import { factsOf } from './invariant.ts';
import type { Invariant } from './invariant.ts';

const UNSAFE: ReadonlySet<string> = new Set(['unsafe', 'late', 'python']);

export const unsafeOnce: Invariant = {
  name: 'unsafe once',
  holds: 'The work of an unsafe action is never done twice, and a child is started once for each attempt.',
  *check(seen) {
    const done = new Map<string, number>();
    for (const { target, key, attempt, token } of factsOf(seen, 'effect')) {
      const id = UNSAFE.has(target) ? key : target === 'child' ? `${key}/${attempt}` : null;
      if (id === null) continue;
      const times = (done.get(id) ?? 0) + 1;
      done.set(id, times);
      if (times > 1) yield `${token} (${target}) was done ${times} times`;
    }
  },
};
