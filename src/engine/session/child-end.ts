/** The end of a child's only run, for its parent (M7, S12). */
import type { ChildEnd } from '../../domain/ports/children.ts';
import type { RunRecord, SessionRecord } from '../../domain/session.ts';
import { addSpent } from '../../domain/spent.ts';
import type { Spent } from '../../domain/spent.ts';
import type { SessionReading } from './session-reading.ts';

/** @param below the spending of the child's own child sessions */
export async function childEnd(
  reading: SessionReading,
  record: SessionRecord,
  run: RunRecord,
  below: Spent,
): Promise<ChildEnd> {
  const { response, actions, outputs, error, usage } = await reading.outcome(run);
  const own: Spent = {
    modelCalls: usage.model_calls,
    tokens: usage.prompt_tokens + usage.completion_tokens,
    cost: usage.cost ?? 0,
    actions,
    children: 1,
  };
  return {
    sessionId: record.session_id,
    status: run.status === 'completed' || run.status === 'cancelled' ? run.status : 'failed',
    output: record.workflow === undefined ? response : (outputs ?? response),
    error,
    spent: addSpent(own, below),
  };
}
