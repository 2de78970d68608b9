/** The execution index object of a namespace, and its entries. */
import type { ExecutionEntry } from '../http/routes/executions.ts';
import type { RunRecord, SessionRecord } from '../domain/session.ts';
import { objectName } from './env.ts';
import type { Env, ExecutionIndexRpc, Remote } from './env.ts';

export function indexFor(env: Env, owner: string | null): Remote<ExecutionIndexRpc> {
  return env.EXECUTIONS.getByName(objectName(owner));
}

export function executionEntry(record: SessionRecord, run: RunRecord): ExecutionEntry {
  return {
    execution_id: run.runId,
    session_id: record.session_id,
    agent: record.agent,
    status: run.status,
    started_at: run.startedAt,
    ended_at: run.endedAt,
  };
}
