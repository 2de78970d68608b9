/** The stages of an action: changes them, keeps the run's counters of them, and ends an action once (S10). */
import { releaseReservation } from './budgets.ts';
import { dequeue, release } from './ready.ts';
import type { ActionNode, RunState, Stage } from './state.ts';
import type { StepFrame } from './step-frame.ts';
import type { Settlement } from './types.ts';

/** Ends an action, once (S10). `propagate` updates its dependents. */
export function settle(frame: StepFrame, node: ActionNode, settlement: Settlement): void {
  if (node.stage === 'settled') return;
  const { state, out } = frame;
  const { key } = node;
  releaseReservation(state, node);
  if (settlement.status !== 'rejected') queue(frame, node);
  switch (node.stage) {
    case 'running':
      release(state, node);
      if (node.attempt > 0) out.push({ type: 'clear_timer', timer: attemptTimer('timeout', node) });
      break;
    case 'ready':
      dequeue(state, node);
      break;
    case 'retrying':
      out.push({ type: 'clear_timer', timer: attemptTimer('retry', node) });
      break;
    case 'asking':
    case 'approval':
      out.push({ type: 'clear_timer', timer: `approval:${key}` });
      break;
    case 'calling':
    case 'awaiting_client':
      out.push({ type: 'clear_timer', timer: `client:${key}` });
      break;
    default:
      break;
  }
  setStage(state, node, 'settled');
  node.settlement = settlement;
  node.satisfied = isSatisfied(node, settlement);
  if (node.admitted) {
    if (node.mode === 'fire_and_forget') state.openBackground -= 1;
    else state.open -= 1;
  }
  out.push({ type: 'settle', key, attempt: node.attempt, ...settlement });
  frame.settled.push(node);
}

/** Whether dependents proceed: with a result, or with null in its place (S6). */
function isSatisfied(node: ActionNode, settlement: Settlement): boolean {
  switch (settlement.status) {
    case 'completed':
      return true;
    case 'failed':
      return node.declaration.onError === 'skip';
    case 'skipped':
      return settlement.reason === 'condition';
    case 'cancelled':
    case 'rejected':
      return false;
  }
}

/** Announces an accepted action with its dependencies, once. */
export function queue(frame: StepFrame, node: ActionNode): void {
  if (node.queued) return;
  node.queued = true;
  const { generation } = frame.state;
  if (generation?.iteration === node.iteration) generation.accepted += 1;
  frame.out.push({ type: 'queue', key: node.key, dependsOn: node.dependencies.map(({ key }) => key) });
}

/** Ends an action that has not settled. A running attempt is aborted and not awaited. */
export function cancel(frame: StepFrame, node: ActionNode, reason: string): void {
  if (node.stage === 'settled') return;
  const { key, attempt, stage } = node;
  if (stage === 'running' || stage === 'calling') frame.out.push({ type: 'abort', key, attempt, reason });
  settle(frame, node, { status: 'cancelled', reason });
}

/** Every change of a stage goes through here, which keeps the counters of `RunState`. */
export function setStage(state: RunState, node: ActionNode, stage: Stage): void {
  const held = holdsWhileAsking(node);
  changeStage(state, node, stage);
  if (holdsWhileAsking(node) !== held) passOn(state, node, held ? 'recalling' : 'behind');
}

/** Whether actions with its idempotency key wait for it while it waits for a client. One that a person has to answer has released the key. */
function holdsWhileAsking({ stage }: ActionNode): boolean {
  return stage === 'awaiting_client';
}

/** What waits for an action that a client has to answer waits for the client as well (C3). */
function passOn(state: RunState, node: ActionNode, stage: 'recalling' | 'behind'): void {
  const { idempotencyKey } = node.declaration;
  for (const other of idempotencyKey === null ? [] : (state.sharing.get(idempotencyKey) ?? [])) {
    if (other.stage === 'recalling' || other.stage === 'behind') changeStage(state, other, stage);
  }
}

/** Whether the lookup of an action waits for one that a client has to answer. */
export function isBehind(state: RunState, { declaration: { idempotencyKey } }: ActionNode): boolean {
  return idempotencyKey !== null && (state.sharing.get(idempotencyKey) ?? []).some(holdsWhileAsking);
}

function changeStage(state: RunState, node: ActionNode, stage: Stage): void {
  const change = Number(isActive(stage)) - Number(isActive(node.stage));
  if (node.admitted && node.mode === 'fire_and_forget') state.activeBackground += change;
  else if (node.admitted) {
    state.active += change;
    state.asking += Number(isAsking(stage)) - Number(isAsking(node.stage));
  }
  node.stage = stage;
}

/** Whether the action runs or will proceed on its own. */
export function isActive(stage: Stage): boolean {
  return stage !== 'waiting' && !isAsking(stage) && stage !== 'settled';
}

/** Whether the action waits for a person or a client. */
export function isAsking(stage: Stage): boolean {
  return stage === 'approval' || stage === 'awaiting_client' || stage === 'behind';
}

/** Whether the client has the call, or is about to get it (C3). */
export function isWithClient({ stage }: ActionNode): boolean {
  return stage === 'calling' || stage === 'awaiting_client';
}

/** Whether an attempt has started, or a client was called. */
export function hasStarted(node: ActionNode): boolean {
  return node.attempt > 0;
}

/** A started fire_and_forget action belongs to the session (S4); no budget cancels it. */
export function isLeftRunning(node: ActionNode): boolean {
  return node.mode === 'fire_and_forget' && hasStarted(node);
}

/** The name includes the attempt, so a timer that fires while it is being cleared cannot affect the next attempt. */
export function attemptTimer(kind: 'timeout' | 'retry', { key, attempt }: ActionNode): string {
  return `${kind}:${key}#${attempt}`;
}
