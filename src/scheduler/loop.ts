/** The loop of a run: iterations start, their text ends, and they complete (S11, P15). */
import { EngineError } from '../domain/errors.ts';
import { bindRemaining } from './bind.ts';
import { armBudget, budgetError, callsLeft, exceed, exceedCost, tokensLeft } from './budgets.ts';
import { openGeneration } from './declare.ts';
import { endRun } from './end-run.ts';
import { prepare } from './prepare.ts';
import { cancel, hasStarted } from './settle.ts';
import { newGeneration } from './state.ts';
import type { Generation } from './state.ts';
import type { StepFrame } from './step-frame.ts';
import type { Input } from './types.ts';
import { brokeOff, judge, needsCheck } from './verdict.ts';
import { park } from './waiting.ts';

export function startRun(frame: StepFrame, { policy, at }: Input<'run_started'>): void {
  const { state } = frame;
  if (state.phase !== 'new') throw new EngineError('internal', 'The run was started twice');
  state.phase = 'live';
  state.policy = { ...policy, maxParallelActions: Math.max(1, policy.maxParallelActions) };
  state.since = at;
  if (policy.source === 'model' && policy.modelCalls < 1) {
    exceed(frame, 'model_calls', policy.modelCalls, 1);
    return endRun(frame, 'failed', budgetError(state, 'model_calls'));
  }
  if (policy.seconds > 0) armBudget(frame, policy.seconds * 1000);
  startIteration(frame, 1, false);
}

function startIteration({ state, out }: StepFrame, iteration: number, last: boolean): void {
  state.generation = newGeneration(iteration, last);
  if (state.policy.source === 'model') state.modelCalls += 1;
  out.push({ type: 'start_iteration', iteration, last });
}

export function endGeneration(frame: StepFrame, { finish, answered, error }: Input<'generation_ended'>): void {
  const { state } = frame;
  const generation = openGeneration(state);
  if (generation === null) return;
  generation.streaming = false;
  generation.finish = finish;
  generation.error = error;
  // The rest of its text is missing: it could have been an action (P11, P15).
  generation.answered = answered && !brokeOff(finish);
  if (brokeOff(finish)) {
    // Only started actions continue (P15).
    for (const node of generation.nodes) if (!hasStarted(node)) cancel(frame, node, `generation_${finish}`);
    reportPlan(frame, generation);
  } else {
    bindRemaining(frame, generation);
    reportPlan(frame, generation);
    for (const node of generation.nodes) {
      if (node.policy.dispatch !== 'after_generation' || hasStarted(node)) continue;
      if (finish === 'length') cancel(frame, node, 'generation_length');
      else if (node.stage === 'held') prepare(frame, node);
    }
  }
}

function reportPlan({ out }: StepFrame, { accepted, iteration }: Generation): void {
  if (accepted > 0) out.push({ type: 'report_plan', iteration });
}

/** Completes the iteration if nothing of it is open, or parks the run if only people and clients can advance it. */
export function review(frame: StepFrame): void {
  const { state } = frame;
  const { generation, phase } = state;
  if (phase !== 'live' || generation === null || generation.streaming) return;
  if (state.open === 0) completeIteration(frame, generation);
  else if (state.active === 0 && state.asking > 0 && !frame.expectsMore) park(frame);
}

function completeIteration(frame: StepFrame, generation: Generation): void {
  const { state } = frame;
  if (needsCheck(state, generation)) {
    if (generation.answerCheck === 'asked') return;
    generation.answerCheck = 'asked';
    frame.out.push({ type: 'check_answer', iteration: generation.iteration });
    return;
  }
  const verdict = judge(state, generation);
  const { answerCheck } = generation;
  if (verdict.type === 'answered' && typeof answerCheck === 'object' && answerCheck.pending) {
    frame.out.push({ type: 'complete_responses' });
  }
  frame.out.push({ type: 'complete_iteration', iteration: generation.iteration, final: verdict.type === 'answered' });
  switch (verdict.type) {
    case 'answered':
      return endRun(frame, 'completed', null);
    case 'failed':
      return endRun(frame, 'failed', verdict.error);
    case 'continue':
      return nextIteration(frame, generation.iteration + 1);
  }
}

export function answerChecked({ state }: StepFrame, { missing, pending }: Input<'answer_checked'>): void {
  if (state.generation?.answerCheck === 'asked') state.generation.answerCheck = { missing, pending };
}

function nextIteration(frame: StepFrame, iteration: number): void {
  const { state } = frame;
  const { policy } = state;
  const { maxIterations } = policy;
  if (maxIterations > 0 && iteration > maxIterations) exceed(frame, 'iterations', maxIterations, maxIterations);
  const calls = callsLeft(state);
  const tokens = tokensLeft(state);
  // One call and some tokens are reserved for the last generation (S12).
  if (calls <= 0) exceed(frame, 'model_calls', policy.modelCalls, state.modelCalls);
  if (policy.tokens !== null && tokens <= 0) exceed(frame, 'tokens', policy.tokens, state.tokens);
  exceedCost(frame);
  if (state.exceeded.length === 0) return startIteration(frame, iteration, false);
  if (calls < 0) return endRun(frame, 'failed', budgetError(state, 'model_calls'));
  if (tokens < 0) return endRun(frame, 'failed', budgetError(state, 'tokens'));
  startIteration(frame, iteration, true);
}
