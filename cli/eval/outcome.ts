/** How a run counts in an evaluation (O3): a run that could not be made says nothing about the agent. */
import type { JsonObject } from '../../src/domain/json.ts';
import type { ErrorCode } from '../../src/domain/errors.ts';

/** `error`: the run or its judgement could not be made. */
export type Outcome = 'passed' | 'failed' | 'error';

/** Codes of runs that failed because of what the agent and its model did. Every other code is a fault of what is around them. */
const OF_THE_AGENT: ReadonlySet<string> = new Set<ErrorCode>([
  'budget_exceeded',
  'max_iterations',
  'no_progress',
  'generation_content_filter',
  'step_failed',
  'too_deep',
  'too_large',
  'too_many_actions',
]);

export interface RunEnd {
  /** `passed`: the run has an answer, which is scored next. */
  readonly outcome: Outcome;
  /** Null if it has an answer. */
  readonly reason: string | null;
}

/** @param document of a run that has ended */
export function endOf({ status, error }: JsonObject): RunEnd {
  if (status === 'completed') return { outcome: 'passed', reason: null };
  const { code, message } = (error ?? {}) as { readonly code?: string; readonly message?: string };
  const reason = `the run is ${String(status)}${code === undefined ? '' : ` (${code}: ${message ?? ''})`}`;
  const isEvidence = status !== 'failed' || (code !== undefined && OF_THE_AGENT.has(code));
  return { outcome: isEvidence ? 'failed' : 'error', reason };
}
