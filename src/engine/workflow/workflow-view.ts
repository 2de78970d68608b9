import type { TerminalStatus } from '../../domain/action.ts';
import type { Json } from '../../domain/json.ts';

/** A workflow's view of its run. */
export interface WorkflowView {
  /** Whether an action with this id is already in the journal. */
  declared(id: string): boolean;
  /** Resolves when the action has settled, even if it is declared later. */
  settled(id: string): Promise<StepOutcome>;
}

export interface StepOutcome {
  readonly status: TerminalStatus;
  readonly output: Json;
  readonly note: string | null;
}
