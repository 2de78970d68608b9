/** Mistakes in the use of several runners (R7). */
import type { Patch } from '../patch.ts';

const POOL = 'src/executors/runner/pool.ts';

export const RUNNER_PATCHES: readonly Patch[] = [
  {
    name: 'an unsafe job that its runner has lost runs on another one',
    file: POOL,
    find: `if (result.end !== 'lost' || job.movable !== true ||`,
    replace: `if (result.end !== 'lost' ||`,
    invariant: 'unsafe once',
    losesRunners: true,
  },
];
