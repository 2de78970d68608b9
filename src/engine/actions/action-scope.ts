/** Shared by the parts of a run's ActionRunner. */
import type { RunState } from '../../scheduler/step.ts';
import type { FetchFeed } from '../feeds/feeds.ts';
import type { Replay } from '../replay/replay.ts';
import type { InputQueue } from '../run/input-queue.ts';
import type { Results } from '../run/results.ts';
import type { RunContext } from '../run/run-context.ts';
import type { RunLog } from '../run/run-log.ts';
import type { RunNames } from '../run/run-names.ts';
import type { ActionLog } from './action-log.ts';
import type { Calls } from './calls.ts';

export interface ActionScope {
  readonly context: RunContext;
  readonly log: RunLog;
  readonly results: Results;
  readonly inputQueue: InputQueue;
  /** The scheduler's current state. */
  readonly state: () => RunState;
  readonly fetchFeed: FetchFeed;
  /** Null for a run that was not interrupted. */
  readonly replay: Replay | null;
  readonly actions: ActionLog;
  readonly names: RunNames;
  readonly calls: Calls;
}
