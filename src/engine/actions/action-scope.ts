/** What the parts of a run's ActionRunner share. */
import type { RunState } from '../../scheduler/step.ts';
import type { Replay } from '../replay/replay.ts';
import type { Inbox } from '../run/inbox.ts';
import type { Results } from '../run/results.ts';
import type { RunContext } from '../run/run-context.ts';
import type { RunLog } from '../run/run-log.ts';
import type { RunNames } from '../run/run-names.ts';
import type { ActionLog } from './action-log.ts';

export interface ActionScope {
  readonly context: RunContext;
  readonly log: RunLog;
  readonly results: Results;
  readonly inbox: Inbox;
  /** The scheduler's state as it is now. */
  readonly state: () => RunState;
  /** Null for a run that did not break off. */
  readonly replay: Replay | null;
  readonly actions: ActionLog;
  readonly names: RunNames;
}
