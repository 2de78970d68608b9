/** What the index of executions lacks about the runs of a session (H1). Reads the session; owns nothing. */
import type { ExecutionEntry, ListedRuns, UnlistedRuns } from '../../domain/execution.ts';
import { limits } from '../../domain/limits.ts';
import type { RunRecord, SessionRecord } from '../../domain/session.ts';
import type { ListedSession } from './directory-outbox.ts';
import type { Session } from './session.ts';

type ListingSource = Pick<
  Session,
  'exists' | 'isRecovering' | 'record' | 'directoryEntry' | 'runCount' | 'runs' | 'read'
>;

/**
 * What is listed about a session; null if there is none, or its runs are not recovered yet. The runs of sub-agents belong to
 * those of their parents; those of stateless clients are not listed.
 */
export function listedSession(session: ListingSource): ListedSession | null {
  if (!session.exists || session.isRecovering) return null;
  const { owner, session_id, incarnation = '', kind, ephemeral } = session.record;
  if (kind === 'child' || ephemeral === true) return null;
  const whose = { owner, session_id, incarnation };
  const isNew = session.runCount === 0;
  return { whose, entry: session.directoryEntry, isNew, runs: (known) => unlistedRuns(session, known) };
}

/**
 * At most `limits.listedRuns` runs, oldest first; a write of them may make further ones visible.
 *
 * @param known null: the index has none
 */
function unlistedRuns(session: ListingSource, known: ListedRuns | null): UnlistedRuns {
  const { record, runCount } = session;
  const listed = known ?? { through: 0, open: [] };
  const entries: ExecutionEntry[] = [];
  const open: [number, boolean][] = [];
  const through = Math.min(runCount, listed.through + limits.listedRuns);
  const fresh = Array.from({ length: through - listed.through }, (_, at) => [listed.through + at + 1, false] as const);
  for (const [number, isListed] of [...listed.open, ...fresh]) {
    const [run] = session.runs(1, number + 1);
    if (run?.run !== number || isCopy(record, run)) continue;
    const isWaiting = run.status === 'waiting';
    const hasEnded = run.status !== 'queued' && run.status !== 'running' && !isWaiting;
    if (hasEnded || (isWaiting && !isListed)) entries.push(entryOf(record, run, session.read().failure(run)));
    if (!hasEnded) open.push([number, isListed || isWaiting]);
  }
  return { entries, listed: { through, open } };
}

/** A fork begins with runs of another session, where they are listed (C4). */
function isCopy({ forked_from: origin, created_at: createdAt }: SessionRecord, run: RunRecord): boolean {
  return origin !== undefined && run.startedAt < createdAt;
}

function entryOf(record: SessionRecord, run: RunRecord, error: ExecutionEntry['error']): ExecutionEntry {
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
