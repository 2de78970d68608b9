/** Records of sessions and runs. */
import type { JsonObject } from './json.ts';

/** The properties of a session, fixed at its creation. */
export interface SessionRecord {
  readonly session_id: string;
  /**
   * Random; distinguishes this session from an earlier one with the same id, and is part of every id that is derived from
   * the session's (T5). Absent until the session's object has chosen it.
   */
  readonly incarnation?: string;
  readonly agent: string;
  /** For a session that runs a workflow: its name, also in `agent` (M6). */
  readonly workflow?: string;
  /** For a child whose definition only its parent sees: distinguishes it from others with the same name (M2). */
  readonly scope?: string;
  readonly user_id: string | null;
  /** The namespace of the API key that created it; null without keys (H5, T4). */
  readonly owner: string | null;
  readonly kind: 'chat' | 'execution' | 'child';
  /** For a child: the parent session, the action that started it, and its nesting depth (M7). */
  readonly parent?: { readonly session_id: string; readonly key: string; readonly depth: number };
  readonly metadata: JsonObject;
  /**
   * The patterns of its definition when it was created, or for a fork, of the other session: they count until a run has a
   * definition (C9). Never shown. Absent in children.
   */
  readonly redact?: readonly string[];
  /** Of the request that created it with an idempotency key: a repeated request must be the same. */
  readonly request_sha256?: string;
  /** Made for one request of a stateless client: unlisted, and deleted one hour after its last run (E2). */
  readonly ephemeral?: true;
  /** The session and the run at whose end it began, if it is a fork (C4). */
  readonly forked_from?: { readonly session_id: string; readonly run_id: string | null };
  readonly created_at: number;
}

/** The record as readers get it: what is internal, and what redaction hides, stays in the system. */
export function shownRecord(
  record: SessionRecord,
): Omit<SessionRecord, 'owner' | 'incarnation' | 'request_sha256' | 'redact'> {
  const { owner: _owner, incarnation: _incarnation, request_sha256: _request, redact: _redact, ...shown } = record;
  return shown;
}

/** What distinguishes a session from all others, also from earlier ones with the same id (T5). */
export type SessionIdentity = Pick<SessionRecord, 'session_id' | 'incarnation'>;

/** Names the session wherever something outlives its object: keys of calls, jobs, relics and reservations. */
export function sessionKey({ session_id: id, incarnation }: SessionIdentity): string {
  return incarnation === undefined ? id : `${id}_${incarnation}`;
}

/** The incarnation in a run's id; null if it has none. */
export function incarnationIn(runId: string): string | null {
  return /^run_[0-9a-f]{32}_([0-9a-f]{12})_\d{1,9}$/.exec(runId)?.[1] ?? null;
}

export type RunStatus = 'queued' | 'running' | 'waiting' | 'completed' | 'failed' | 'cancelled';

/** What started a run in the list of executions: a message, posted protocol text, or the start of a workflow. */
export const EXECUTION_KINDS = ['chat', 'execution', 'workflow'] as const;
export type ExecutionKind = (typeof EXECUTION_KINDS)[number];

/** One run: its number within the session, 1-based, and its range of sequence numbers. */
export interface RunRecord {
  readonly run: number;
  readonly runId: string;
  /** The number of the run that it follows: less than its own; 0 if it begins the conversation (C4). */
  readonly parent: number;
  /** The number of the run whose message or action it repeats; null: it is not a retry. */
  readonly retryOf: number | null;
  readonly status: RunStatus;
  readonly firstSeq: number;
  readonly lastSeq: number | null;
  readonly startedAt: number;
  readonly endedAt: number | null;
  /** The stored input that started it. */
  readonly input: JsonObject;
  readonly idempotencyKey: string | null;
}

/** Where a run is in the tree of runs (C4). */
export type RunPlace = Pick<RunRecord, 'parent' | 'retryOf'>;
