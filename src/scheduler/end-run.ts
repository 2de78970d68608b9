/** The end of a run: its result, a cancel, or the end of its time budget (J5, S12, C3). */
import type { RunError } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';
import { armBudget, budgetError, disarmBudget, exceed } from './budgets.ts';
import { propagate } from './propagate.ts';
import { cancel, isAsking, isLeftRunning, isWithClient } from './settle.ts';
import type { StepFrame } from './step-frame.ts';

export function endRun(frame: StepFrame, status: 'completed' | 'failed' | 'cancelled', error: RunError | null): void {
  disarmBudget(frame);
  frame.state.phase = 'ended';
  frame.out.push({ type: 'end_run', status, error });
}

export function cancelRun(frame: StepFrame, reason: string): void {
  const { state } = frame;
  if (state.phase === 'ended') {
    for (const node of state.nodes) cancel(frame, node, reason);
  } else if (state.phase === 'live' || state.phase === 'parked') abandon(frame, reason, true);
}

/** What waits for people and clients is cancelled: the whole run, if it waits for them only (C3). */
export function cancelWaiting(frame: StepFrame, reason: string): void {
  const { state } = frame;
  if (state.phase === 'parked') return cancelRun(frame, reason);
  for (const node of state.nodes) {
    if (isAsking(node.stage) || isWithClient(node)) cancel(frame, node, reason);
  }
}

/**
 * The time budget is used up: awaited work is cancelled and the model gets one last generation with its own deadline.
 * When that has passed too, or there is no model, the run ends.
 */
export function timeBudgetEnded(frame: StepFrame): void {
  const { state, at, out } = frame;
  const { policy, generation } = state;
  if (generation === null || !state.budgetTimer) return;
  state.budgetTimer = false;
  const usedMs = state.elapsedMs + (at - state.since);
  if (!state.overtime) {
    const remainingMs = policy.seconds * 1000 - usedMs;
    if (remainingMs > 0) return armBudget(frame, remainingMs);
    exceed(frame, 'seconds', policy.seconds, usedMs / 1000);
  }
  if (state.overtime || policy.source === 'text' || generation.last) return abandon(frame, 'budget_exceeded', false);
  state.overtime = true;
  if (generation.streaming) {
    generation.stopped = true;
    out.push({ type: 'stop_generation' });
  }
  for (const node of state.nodes) if (!isLeftRunning(node)) cancel(frame, node, 'budget_exceeded');
  armBudget(frame, limits.lastGenerationMs);
}

/** Ends the run now: stops the stream and cancels all unsettled actions without waiting for them (J5). */
function abandon(frame: StepFrame, reason: string, cancelled: boolean): void {
  const { state, out } = frame;
  const { generation } = state;
  if (generation?.streaming === true) {
    generation.streaming = false;
    out.push({ type: 'stop_generation' });
  }
  for (const node of state.nodes) {
    if (cancelled || !isLeftRunning(node)) cancel(frame, node, reason);
  }
  propagate(frame);
  if (generation !== null) out.push({ type: 'complete_iteration', iteration: generation.iteration, final: false });
  if (cancelled) endRun(frame, 'cancelled', null);
  else endRun(frame, 'failed', budgetError(state, 'seconds'));
}
