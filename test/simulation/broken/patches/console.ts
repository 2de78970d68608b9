/** Mistakes in what the console makes of a run. */
import type { Patch } from '../patch.ts';

export const CONSOLE_PATCHES: readonly Patch[] = [
  {
    name: 'the graph places a node beside what it depends on',
    file: 'console/run/layout.ts',
    find: `?.column ?? -1) + 1)`,
    replace: `?.column ?? -1))`,
    invariant: 'drawn run',
  },
  {
    name: 'the lower bound counts the time in a queue',
    file: 'console/run/bound.ts',
    find: `const first = attempts[0]?.startedAt ?? Infinity;`,
    replace: `const first = attempts[0]?.startedAt ?? Infinity;\n  total += first === Infinity ? 0 : end - first + 10;`,
    invariant: 'drawn run',
  },
];
