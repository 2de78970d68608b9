/** What the index of executions lists about each run (H1), and what a session knows about its entries there. */
import { mergePage } from './list-page.ts';
import type { DirectoryPosition, MergedPage, ShardRows } from './list-page.ts';
import type { ExecutionKind, RunStatus } from './session.ts';

export interface ExecutionEntry {
  readonly execution_id: string;
  readonly session_id: string;
  /** The same as `execution_id`. */
  readonly run_id: string;
  readonly kind: ExecutionKind;
  /** The agent, or the workflow. */
  readonly agent: string;
  readonly status: string;
  /** Why it failed; null if it did not. */
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly started_at: number;
  /** When it ended, or began to wait. */
  readonly ended_at: number | null;
}

/** Newest first: executions after `before` in that order, with this status and kind. */
export interface ExecutionsPage {
  readonly limit: number;
  readonly before: DirectoryPosition | null;
  readonly status: RunStatus | null;
  readonly kind: ExecutionKind | null;
}

/** One shard's part of a page. */
export type ExecutionRows = ShardRows<ExecutionEntry>;

/** The runs of a session that the index has. */
export interface ListedRuns {
  /** Every run up to this number is in the index with its end, except for those in `open`. */
  readonly through: number;
  /** Numbers of runs that had not ended, and whether the index lists them as waiting. */
  readonly open: readonly (readonly [run: number, isListed: boolean])[];
}

/** What the index lacks, and what it has after a write of it. */
export interface UnlistedRuns {
  readonly entries: readonly ExecutionEntry[];
  readonly listed: ListedRuns;
}

const positionOf = ({ started_at: at, execution_id: id }: ExecutionEntry): DirectoryPosition => ({
  at,
  id,
});

/** A page of the executions of all shards. */
export function mergeExecutions(shards: readonly ExecutionRows[], limit: number): MergedPage<ExecutionEntry> {
  return mergePage(shards, limit, positionOf);
}
