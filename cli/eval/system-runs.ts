/** Runs and judgements of an evaluation on a system (O3), each in a session of its own. */
import type { Client } from '../../src/client/client.ts';
import type { Run } from '../../src/client/run.ts';
import type { Session } from '../../src/client/session.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import type { CaseRun, RunCase } from './evaluate.ts';
import { spentBy } from './evaluate.ts';
import type { AskJudge } from './judge.ts';
import { endOf } from './outcome.ts';

/** Milliseconds of cancelling a run when the evaluation is stopped. */
const CANCEL_MS = 10_000;

/** A run that waits for a person has no answer: it is cancelled, unless the case decides. @param signal cancels all runs */
export function systemRuns(client: Client, signal: AbortSignal): RunCase {
  return async ({ agent, message, variables, history, approvals }) => {
    const session = await client.createSession(agent, {
      variables,
      signal,
      ...(history.length === 0 ? {} : { history: history.map(({ role, content }) => ({ role, content })) }),
    });
    const options = approvals === null ? {} : { onApproval: () => approvals === 'approve' };
    const start = async (): Promise<Run> => await session.send(message, { ...options, signal });
    return await ended(session, start, { isDecided: approvals !== null, signal });
  };
}

/** Asks an agent of the system. @param signal cancels its runs. @throws Error if its run has no answer */
export function agentJudge(client: Client, agent: string, signal: AbortSignal): AskJudge {
  return async (prompt) => {
    const session = await client.createSession(agent, { signal });
    const start = async (): Promise<Run> => await session.send(prompt, { signal });
    const { document, models } = await ended(session, start, { isDecided: false, signal });
    const { outcome, reason } = endOf(document);
    if (outcome !== 'passed') throw new Error(`${reason ?? 'it has no answer'} (${session.id})`);
    const text = typeof document['response'] === 'string' ? document['response'] : '';
    return { text, ...spentBy(document), session_id: session.id, models };
  };
}

/** @throws the signal's reason if it is aborted: the run is cancelled */
async function ended(
  session: Session,
  start: () => Promise<Run>,
  { isDecided, signal }: { readonly isDecided: boolean; readonly signal: AbortSignal },
): Promise<CaseRun> {
  const models = new Set<string>();
  try {
    const run = await start();
    for await (const { type, data } of run.events()) {
      if (type === 'usage' && data.model !== undefined) models.add(data.model);
      // A client tool has no client here, also if the case decides approvals.
      if (type === 'agent_waiting' && (!isDecided || data.reason === 'client_tools')) await session.cancel();
    }
    signal.throwIfAborted();
    return { document: (await run.document()) as unknown as JsonObject, models: [...models] };
  } finally {
    // The signal has only ended the reading. A system that is gone has no run to cancel.
    if (signal.aborted) await session.cancel({ signal: AbortSignal.timeout(CANCEL_MS) }).catch(() => undefined);
  }
}
