/** What one call of `step` works on. */
import type { ActionNode, RunState } from './state.ts';
import type { SchedulerCommand } from './types.ts';

/** The commands so far, and the actions that have settled without their dependents knowing yet. */
export interface StepFrame {
  readonly state: RunState;
  readonly at: number;
  readonly out: SchedulerCommand[];
  readonly settled: ActionNode[];
}

/** Why a run has failed. */
export interface RunError {
  readonly code: string;
  readonly message: string;
}
