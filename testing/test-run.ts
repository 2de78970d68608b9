/** A run as a test sees it. */
import type { SessionEvent } from '../src/domain/event.ts';
import type { RunRecord } from '../src/domain/session.ts';
import type { OpenApproval } from '../src/engine/actions/approval-list.ts';
import type { RunResult } from '../src/view/result.ts';
import type { Session } from '../src/engine/session/session.ts';

/** One action of a run. Times are milliseconds of the time of the test. */
export type TestAction = RunResult['actions'][number];

/** A run at its end, or while it waits for people and clients. */
export interface TestRun {
  readonly id: string;
  /** `waiting`: for approvals or for the results of client tools, also of its sub-agents. */
  readonly status: RunResult['status'];
  /** The answer; empty if it has none. */
  readonly text: string;
  /** The whole text of each thought, in order. */
  readonly thoughts: readonly string[];
  readonly actions: readonly TestAction[];
  /** All its events in order, also those that are not stored: pieces of text, progress. */
  readonly events: readonly SessionEvent[];
  readonly usage: RunResult['usage'];
  readonly error: RunResult['error'];
  readonly warnings: RunResult['warnings'];
  /** Number of generations. */
  readonly iterations: number;
  /** The outputs of a workflow; null if it has none. */
  readonly outputs: NonNullable<RunResult['outputs']> | null;
  /** Open requests for approval, also of sub-agents. */
  readonly approvals: readonly OpenApproval[];
  /** Open calls of client tools. */
  readonly calls: NonNullable<RunResult['pending']>;
}

/** @param waiting the open requests if something waits for people or clients, in this session or below it; else null */
export async function testRun(
  session: Session,
  record: RunRecord,
  events: readonly SessionEvent[],
  waiting: readonly OpenApproval[] | null,
): Promise<TestRun> {
  const document = await documentOf(session, record);
  const own = events.filter(({ run_id: id }) => id === record.runId);
  return {
    id: record.runId,
    status: document.status === 'running' && waiting !== null ? 'waiting' : document.status,
    text: document.response,
    thoughts: own.flatMap((event) => (event.type === 'thought_completed' ? [event.data.content] : [])),
    actions: document.actions,
    events: own,
    usage: document.usage,
    error: document.error,
    warnings: document.warnings,
    iterations: document.iterations,
    outputs: document.outputs ?? null,
    approvals: waiting ?? [],
    calls: document.pending ?? [],
  };
}

/** A run as its document. */
export async function documentOf(session: Session, record: RunRecord): Promise<RunResult> {
  return JSON.parse(await textOf(session.read().result(record))) as RunResult;
}

/** All pieces, joined. */
export async function textOf(pieces: AsyncIterable<string>): Promise<string> {
  let text = '';
  for await (const piece of pieces) text += piece;
  return text;
}
