/** Waiting for people and clients: their answers, expiries, and parking the run (J8, C3). */
import { limits } from '../domain/limits.ts';
import { clientTimeoutOf } from './attempts.ts';
import { armBudget, disarmBudget } from './budgets.ts';
import { lookup } from './prepare.ts';
import { isBlockedByOthers } from './queries.ts';
import { isWithClient, setStage, settle } from './settle.ts';
import type { ActionNode } from './state.ts';
import type { StepFrame } from './step-frame.ts';
import type { Input, Settlement } from './types.ts';

export function approvalAsked(frame: StepFrame, { key, error }: Input<'approval_asked'>): void {
  const node = frame.state.byKey.get(key);
  if (node?.stage !== 'asking') return;
  if (error === null) setStage(frame.state, node, 'approval');
  else settle(frame, node, { status: 'failed', error });
}

export function approvalResolved(frame: StepFrame, { key, approved, note }: Input<'approval_resolved'>): void {
  const node = frame.state.byKey.get(key);
  if (node?.stage !== 'approval') return;
  resume(frame);
  if (approved) {
    frame.out.push({ type: 'clear_timer', timer: `approval:${key}` });
    lookup(frame, node);
  } else
    deny(frame, node, note === null ? `Action "${node.id}" was denied` : `Action "${node.id}" was denied: ${note}`);
}

export function approvalExpired(frame: StepFrame, node: ActionNode): void {
  if (node.stage !== 'approval') return;
  resume(frame);
  deny(frame, node, `Action "${node.id}" was not approved in time`);
}

function deny(frame: StepFrame, node: ActionNode, message: string): void {
  settle(frame, node, { status: 'failed', error: { code: 'approval_denied', message, retryable: false } });
}

/** The call is in the journal: the client may answer it. */
export function clientCalled({ state }: StepFrame, { key }: Input<'client_called'>): void {
  const node = state.byKey.get(key);
  if (node?.stage === 'calling') setStage(state, node, 'awaiting_client');
}

/** The client's result, or why the call cannot be shown to it: there is no other attempt. */
export function clientEnded(frame: StepFrame, node: ActionNode, settlement: Settlement): void {
  resume(frame);
  settle(frame, node, settlement);
}

export function clientExpired(frame: StepFrame, node: ActionNode): void {
  if (!isWithClient(node)) return;
  const { key, attempt } = node;
  const seconds = clientTimeoutOf(node.policy) / 1000;
  if (node.stage === 'calling') frame.out.push({ type: 'abort', key, attempt, reason: 'timeout' });
  const message = `The client did not answer the call of action "${node.id}" within ${seconds} s`;
  clientEnded(frame, node, { status: 'failed', error: { code: 'timeout', message, retryable: false } });
}

/** The text continues only after an approval or a client's result, which is awaited as at the end of a text. */
export function generationIdle(frame: StepFrame): void {
  if (isBlockedByOthers(frame.state)) park(frame);
}

/** Only approvals and results of clients can advance the run: its stream may end, and the time budget stops counting. */
export function park(frame: StepFrame): void {
  const { state, at } = frame;
  state.phase = 'parked';
  state.elapsedMs += at - state.since;
  disarmBudget(frame);
  frame.out.push({ type: 'end_run', status: 'waiting', error: null });
}

/** An answer or more text has arrived: the time budget of a parked run counts again. */
export function resume(frame: StepFrame): void {
  const { state, at } = frame;
  if (state.phase !== 'parked') return;
  state.phase = 'live';
  state.since = at;
  const { seconds } = state.policy;
  if (state.overtime) armBudget(frame, limits.lastGenerationMs);
  else if (seconds > 0) armBudget(frame, Math.max(0, seconds * 1000 - state.elapsedMs));
}
