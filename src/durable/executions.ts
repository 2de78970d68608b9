/** The index object of an API key, and what it is told of an execution. */
import type { ExecutionEntry } from '../http/app.ts';
import type { RunRecord, SessionRecord } from '../domain/session.ts';
import type { ExecutionIndexObject } from './objects/execution-index-object.ts';
import type { Env } from './settings.ts';

export function indexFor(env: Env, owner: string | null): DurableObjectStub<ExecutionIndexObject> {
  return env.EXECUTIONS.getByName(owner === null ? 'local' : `key:${owner}`);
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
