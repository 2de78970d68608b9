/** What became of the spans of jobs (O1). */

/**
 * Why a span was not delivered. `queue_full`: too many others were waiting; `failed`: the collector did not take it after
 * all retries; `rejected`: the collector took the request but not the span; `shutdown`: the runner stopped before; the next start sends it again.
 */
export type DropReason = 'queue_full' | 'failed' | 'rejected' | 'shutdown';

export interface SpanCounts {
  /** Waiting, or being sent. */
  readonly queued: number;
  /** Since the start of the runner. */
  readonly exported: number;
  readonly dropped: Readonly<Record<DropReason, number>>;
}
