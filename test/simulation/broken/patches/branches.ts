/** Mistakes with the tree of runs (C4), and with messages that runs receive (C5). */
import type { Patch } from '../patch.ts';

const RUNS = 'src/engine/session/session-runs.ts';
const RUN_TABLE = 'src/journal/run-table.ts';

export const BRANCH_PATCHES: readonly Patch[] = [
  {
    name: 'a run is shown all earlier runs, whatever branch they are on',
    file: RUN_TABLE,
    find: `JOIN runs ON runs.run = branch.parent`,
    replace: `JOIN runs ON runs.run = branch.run - 1`,
    invariant: 'own branch',
  },
  {
    name: 'a run begins with the variables of the run before it, whatever branch that is on',
    file: RUNS,
    find: `if (begins && this.#journal.variables.tip(run) !== stored.parent) this.#memory.restoreVariables(stored.parent);`,
    replace: ``,
    invariant: 'own branch',
  },
  {
    name: 'a run refers to the results of all earlier runs, whatever branch they are on',
    file: RUN_TABLE,
    find: `return this.#isStraight(last) ? \`run <= \${parameter}\``,
    replace: `return last > 0 ? \`run <= \${parameter}\``,
    invariant: 'own branch',
  },
  {
    name: 'a message that a run has received and not shown is lost with the end of the run',
    file: RUNS,
    find: `this.#steering.passOn(run, cancelReason === null || cancelReason === SUPERSEDED ? null : cancelReason);`,
    replace: `void [run, cancelReason];`,
    invariant: 'taken once',
  },
  {
    name: 'a message that a run has received is shown one generation too late',
    file: 'src/engine/generation/generation-runner.ts',
    find: `this.#turn.received.push({ before: iteration,`,
    replace: `this.#turn.received.push({ before: iteration + 1,`,
    invariant: 'taken once',
  },
  {
    name: 'a fork refers to the blocks of the other session',
    file: 'src/journal/fork-rows.ts',
    find: `const moved = ['segment', 'completes'].flatMap(`,
    replace: `const moved = ['completes'].flatMap(`,
    invariant: 'whole fork',
  },
  {
    name: 'a session is forked at a run that has not ended',
    file: 'src/engine/session/session-fork.ts',
    find: `run === null ? undefined : runs.open()`,
    replace: `run === null ? undefined : runs.open().slice(0, 0)`,
    invariant: 'whole fork',
  },
];
