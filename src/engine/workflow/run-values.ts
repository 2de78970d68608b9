/** The values of `$(run.…)` in a workflow: fixed for a run, so that they are the same after a crash (M6, J2). */
import type { JsonObject } from '../../domain/json.ts';
import type { SessionRecord } from '../../domain/session.ts';

/** @param record the run's session, which is created with it */
export function runValues(record: SessionRecord, runId: string): JsonObject {
  const at = new Date(record.created_at).toISOString();
  const [date = '', time = ''] = at.slice(0, 19).split('T');
  return {
    TIMESTAMP: at,
    TIMESTAMP_UNIX: Math.floor(record.created_at / 1_000),
    DATE: date,
    TIME: time,
    DATETIME: `${date} ${time}`,
    WORKFLOW_ID: runId,
    SESSION_ID: record.session_id,
    USER_ID: record.user_id,
  };
}
