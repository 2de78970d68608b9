/** The execution index object of a namespace, and its entries. */
import { limits } from '../domain/limits.ts';
import type { ExecutionEntry } from '../http/routes/executions.ts';
import type { RunRecord, SessionRecord } from '../domain/session.ts';
import { objectName } from '../domain/owner.ts';
import type { Env, ExecutionIndexRpc, Remote } from './env.ts';

export function indexFor(env: Env, owner: string | null): Remote<ExecutionIndexRpc> {
  return env.EXECUTIONS.getByName(objectName(owner));
}

/** @param error why it failed; null if it did not */
export function executionEntry(record: SessionRecord, run: RunRecord, error: ExecutionEntry['error']): ExecutionEntry {
  return {
    execution_id: run.runId,
    session_id: record.session_id,
    run_id: run.runId,
    kind: record.workflow !== undefined ? 'workflow' : record.kind === 'chat' ? 'chat' : 'execution',
    agent: record.agent,
    status: run.status,
    error:
      error === null ? null : { ...error, message: error.message.slice(0, limits.executionErrorChars).toWellFormed() },
    started_at: run.startedAt,
    ended_at: run.endedAt,
  };
}
