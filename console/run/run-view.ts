/** What the parts of the run view have in common. */
import type { Bound } from './bound.ts';
import type { Trace } from './trace.ts';
import type { TraceAction } from './trace-types.ts';

export interface RunViewProps {
  /** At the moment that is shown. It is mutable: `trace.revision` says whether it has changed. */
  readonly trace: Trace;
  readonly bound: Bound;
  /** Epoch milliseconds of the moment that is shown. */
  readonly now: number;
  /** Whether it happens now. */
  readonly isLive: boolean;
  /** Whether its earlier events are still to come. */
  readonly isLoading: boolean;
  /** The selected action. */
  readonly chosen: TraceAction | undefined;
  /** Selects the action of a key. */
  readonly select: (key: string | null) => void;
}
