/** Sessions and runs as they are recorded. */
import type { JsonObject } from './json.ts';

/** What is known of a session from its creation on. */
export interface SessionRecord {
  readonly session_id: string;
  readonly agent: string;
  /** Of a session that runs a workflow: its name, which `agent` repeats (M6). */
  readonly workflow?: string;
  readonly user_id: string | null;
  /** Name of the API key that created it; null when the system runs without keys (H5). */
  readonly owner: string | null;
  readonly kind: 'chat' | 'execution' | 'child';
  /** Of a child: the session that started it, for which of its actions, and how many are above it (M7). */
  readonly parent?: { readonly session_id: string; readonly key: string; readonly depth: number };
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
