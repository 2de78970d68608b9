/** The index object of an API key, and what it is told of an execution. */
import type { RunResult } from '../engine/run-result.ts';
import type { ExecutionEntry } from '../http/app.ts';
import type { SessionRecord } from '../domain/session.ts';
import type { ExecutionIndexObject } from './execution-index-object.ts';
import type { Env } from './settings.ts';

export function indexFor(env: Env, owner: string | null): DurableObjectStub<ExecutionIndexObject> {
  return env.EXECUTIONS.getByName(owner === null ? 'local' : `key:${owner}`);
}

export function executionEntry(record: SessionRecord, result: RunResult): ExecutionEntry {
  return {
    execution_id: result.run_id,
    session_id: record.session_id,
    agent: record.agent,
    status: result.status,
    started_at: result.started_at,
    ended_at: result.ended_at,
  };
}
