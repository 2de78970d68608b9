/** What a run view shows of a run: made in trace.ts. All times are epoch milliseconds of the server. */
import type { EventOf, Wait } from '../../src/client/index.ts';

export type ActionStatus =
  | 'queued'
  | 'waiting'
  | 'running'
  | 'completed'
  | 'failed'
  | 'skipped'
  | 'cancelled'
  | 'rejected';

type Parameters = EventOf<'action_queued'>['data']['parameters'];

/** An action as the model wrote it. */
interface Written {
  readonly type?: string | null;
  readonly mode?: string | null;
  readonly parameters?: Parameters;
  readonly embedded_in_thought?: boolean;
  readonly repaired?: boolean;
}

export interface Failure {
  readonly code: string;
  readonly message: string;
}

export interface Attempt {
  /** 1-based. */
  readonly attempt: number;
  readonly startedAt: number;
  /** Null while it runs. */
  readonly endedAt: number | null;
  readonly error: Failure | null;
  /** Milliseconds until the next attempt; null: there is none. */
  readonly retryDelayMs: number | null;
}

export interface TraceAction {
  /** Unique in the run: `iteration.id`, or `iteration.id!seq` for text that was rejected. */
  readonly key: string;
  /** As the model wrote it. */
  readonly id: string;
  readonly iteration: number;
  /** Position in the run. */
  readonly index: number;
  readonly queuedAt: number;
  /** The tool, agent, relic or workflow. */
  name: string | null;
  /** Empty before it is known; of a rejected action as far as it could be read. */
  written: Written;
  /** Those whose ids are not known yet are missing. */
  readonly dependencies: TraceAction[];
  readonly dependents: TraceAction[];
  /** Position in the plan, with barriers; null before the plan. */
  wave: number | null;
  status: ActionStatus;
  /** The parameters with resolved references; undefined if they are the written ones. */
  executed: Parameters | undefined;
  /** Undefined: none. */
  output: unknown;
  error: Failure | null;
  isCached: boolean;
  attempts: readonly Attempt[];
  waits: readonly Wait[];
  endedAt: number | null;
  /** What it printed: the end, if it is long. */
  progress: string;
  childSessionId: string | null;
}

/** A thought, bare text or a response. */
export interface TraceBlock {
  readonly segment: number;
  readonly isResponse: boolean;
  readonly startedAt: number;
  /** Null while the model writes it. */
  readonly endedAt: number | null;
}

export interface TraceIteration {
  readonly iteration: number;
  readonly startedAt: number;
  /** When the model stopped; null while it writes. */
  readonly generationEnd: number | null;
}

/** A change of a feed or a variable. */
export type Change = EventOf<'context_feed_updated' | 'variable_changed'>;
export type Warning = EventOf<'warning' | 'budget_exceeded'>;

/** Tokens, and US dollars as far as prices are known. */
export interface Totals {
  readonly prompt: number;
  readonly completion: number;
  readonly cached: number;
  readonly cost: number;
  readonly isEstimated: boolean;
}

export function keyOf(iteration: number, id: string): string {
  return `${iteration}.${id}`;
}

export function isSettled({ status }: TraceAction): boolean {
  return !['queued', 'waiting', 'running'].includes(status);
}

/** When its first attempt, or its first wait, began; null: it has only been in a queue. */
export function beganAt({ attempts, waits }: TraceAction): number | null {
  const first = Math.min(attempts[0]?.startedAt ?? Infinity, waits[0]?.from ?? Infinity);
  return first === Infinity ? null : first;
}

/** Milliseconds from its first attempt to its end, or so far; null: it did not run. */
export function ranMs({ attempts, waits, endedAt }: TraceAction, now: number): number | null {
  const start = attempts[0]?.startedAt ?? waits.findLast((wait) => wait.for === 'client tool')?.from;
  return start === undefined ? null : Math.max(0, (endedAt ?? now) - start);
}
