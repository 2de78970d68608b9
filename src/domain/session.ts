/** Sessions and runs as they are recorded. */
import type { JsonObject } from './json.ts';

/** What is known of a session from its creation on. */
export interface SessionRecord {
  readonly session_id: string;
  readonly agent: string;
  readonly user_id: string | null;
  /** Name of the API key that created it; null when the system runs without keys (H5). */
  readonly owner: string | null;
  readonly kind: 'chat' | 'execution';
  readonly metadata: JsonObject;
  readonly created_at: number;
}

export type RunStatus = 'queued' | 'running' | 'waiting' | 'completed' | 'failed' | 'cancelled';

/** One run: its number within the session, from 1, and the sequence numbers that it covers. */
export interface RunRecord {
  readonly run: number;
  readonly runId: string;
  readonly status: RunStatus;
  readonly firstSeq: number;
  readonly lastSeq: number | null;
  readonly startedAt: number;
  readonly endedAt: number | null;
  /** What started it, as the session stored it. */
  readonly input: JsonObject;
  readonly idempotencyKey: string | null;
}
