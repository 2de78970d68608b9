/** A run as the answer of `POST /execute/tool`, `/execute/agent` and `/execute/workflow` (docs/migration.md#http). */
import type { RunRecord } from '../../domain/session.ts';
import type { RunWriter } from '../run-response.ts';

export function executionDocument(sessionId: string): RunWriter {
  return async function* (reading, run) {
    const { status, output, error } = await reading.returned(run);
    const head = { execution_id: run.runId, session_id: sessionId, run_id: run.runId, status };
    yield `${JSON.stringify(head).slice(0, -1)},"output":${output}`;
    const failure = { error: error?.message ?? null, error_type: error?.code ?? null };
    yield `,${JSON.stringify({ ...failure, ...timesOf(run) }).slice(1)}`;
  };
}

function timesOf({ startedAt, endedAt }: RunRecord): object {
  const duration = endedAt === null ? null : (endedAt - startedAt) / 1_000;
  return { started_at: startedAt, completed_at: endedAt, duration_seconds: duration };
}
