/** The working data of one call of `step`. */
import type { ActionNode, RunState } from './state.ts';
import type { SchedulerCommand } from './types.ts';

/** The commands so far, and the settled actions whose dependents were not updated yet. */
export interface StepFrame {
  readonly state: RunState;
  readonly at: number;
  readonly out: SchedulerCommand[];
  readonly settled: ActionNode[];
  /** More answers of people and clients follow at once. */
  readonly expectsMore: boolean;
}
