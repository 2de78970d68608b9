/** Runs and judgements of an evaluation on a system (O3), each in a session of its own. */
import type { Client } from '../../src/client/client.ts';
import type { Run } from '../../src/client/run.ts';
import type { Session } from '../../src/client/session.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import type { CaseRun, RunCase } from './evaluate.ts';
import { spentBy } from './evaluate.ts';
import type { AskJudge } from './judge.ts';
import { endOf } from './outcome.ts';

/** A run that waits for a person has no answer: it is cancelled, unless the case decides. */
export function systemRuns(client: Client): RunCase {
  return async ({ agent, message, variables, history, approvals }) => {
    const session = await client.createSession(agent, {
      variables,
      ...(history.length === 0 ? {} : { history: history.map(({ role, content }) => ({ role, content })) }),
    });
    const options = approvals === null ? {} : { onApproval: () => approvals === 'approve' };
    return await ended(session, await session.send(message, options), approvals !== null);
  };
}

/** Asks an agent of the system. @throws Error if its run has no answer */
export function agentJudge(client: Client, agent: string): AskJudge {
  return async (prompt) => {
    const session = await client.createSession(agent);
    const { document, models } = await ended(session, await session.send(prompt), false);
    const { outcome, reason } = endOf(document);
    if (outcome !== 'passed') throw new Error(`${reason ?? 'it has no answer'} (${session.id})`);
    const text = typeof document['response'] === 'string' ? document['response'] : '';
    return { text, ...spentBy(document), session_id: session.id, models };
  };
}

async function ended(session: Session, run: Run, isDecided: boolean): Promise<CaseRun> {
  const models = new Set<string>();
  for await (const { type, data } of run.events()) {
    if (type === 'usage' && data.model !== undefined) models.add(data.model);
    // A client tool has no client here, also if the case decides approvals.
    if (type === 'agent_waiting' && (!isDecided || data.reason === 'client_tools')) await session.cancel();
  }
  return { document: (await run.document()) as unknown as JsonObject, models: [...models] };
}
