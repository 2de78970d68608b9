/** What follows when actions have settled: dependents, barriers and fail-fast (S3, S4, S6). */
import { countSettled, liftBarrier } from './graph.ts';
import { consider } from './prepare.ts';
import { cancel } from './settle.ts';
import type { ActionNode } from './state.ts';
import type { StepFrame } from './step-frame.ts';

/** Updates dependents and barriers of everything that has settled, in cascade. */
export function propagate(frame: StepFrame): void {
  const { state, settled } = frame;
  for (const node of settled) {
    for (const dependent of node.dependents) {
      if (dependent.stage !== 'waiting') continue;
      dependent.unmet -= 1;
      countSettled(dependent, node);
      consider(frame, dependent);
    }
    const { generation } = state;
    // A sync action settles in its own iteration, which waits for it.
    if (generation !== null && node.declaration.mode === 'sync') {
      for (const freed of liftBarrier(generation, node)) consider(frame, freed);
    }
    if (node.settlement?.status === 'failed') failFast(frame, node);
  }
  settled.length = 0;
}

function failFast(frame: StepFrame, node: ActionNode): void {
  const { state } = frame;
  if (!state.policy.failFast || node.satisfied || node.mode === 'fire_and_forget') return;
  if (state.generation !== null) state.generation.failedFast = true;
  for (const other of state.nodes) cancel(frame, other, 'fail_fast');
}
