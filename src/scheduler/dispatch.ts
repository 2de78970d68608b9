/** The attempts of actions: starts, outcomes, time-outs, retries, questions (S5, S7, S8, J8). */
import { actionSpec } from '../domain/action-types.ts';
import type { ActionError } from '../domain/action.ts';
import { limits } from '../domain/limits.ts';
import type { ChildBudget } from '../domain/ports/children.ts';
import { NOTHING_SPENT } from '../domain/spent.ts';
import { attemptsAllowed, isOverload, retryDelayMs, timeoutOf } from './attempts.ts';
import { releaseReservation, reserve, shortageOf } from './budgets.ts';
import { askApproval } from './prepare.ts';
import { release, slowDown, speedUp, takeNext } from './ready.ts';
import { attemptTimer, isWithClient, setStage, settle } from './settle.ts';
import type { ActionNode, RunState } from './state.ts';
import type { StepFrame } from './step-frame.ts';
import type { Input } from './types.ts';
import { clientEnded } from './waiting.ts';

/** Starts actions while slots are free, most urgent first (S2, S5). */
export function dispatch(frame: StepFrame): void {
  const { state } = frame;
  for (let node = takeNext(state); node !== null; node = takeNext(state)) {
    const shortage = shortageOf(frame, node);
    setStage(state, node, 'running');
    if (shortage === null) start(frame, node, reserve(frame, node));
    else settle(frame, node, { status: 'failed', error: { ...shortage, retryable: false } });
  }
}

function start(frame: StepFrame, node: ActionNode, budget: ChildBudget | null): void {
  node.attempt += 1;
  if (actionSpec(node.declaration.type).spends === 'model_call') frame.state.modelCalls += 1;
  const { key, attempt } = node;
  const timeoutMs = timeoutOf(node.declaration, node.policy);
  frame.out.push({ type: 'start', key, attempt, timeoutMs, budget });
  frame.out.push({ type: 'set_timer', timer: attemptTimer('timeout', node), delayMs: timeoutMs });
}

function runningNode(state: RunState, key: string, attempt: number): ActionNode | null {
  const node = state.byKey.get(key);
  if (node === undefined || node.attempt !== attempt) return null;
  return node.stage === 'running' || isWithClient(node) ? node : null;
}

export function attemptSucceeded(frame: StepFrame, { key, attempt, spent }: Input<'attempt_succeeded'>): void {
  const node = runningNode(frame.state, key, attempt);
  if (node === null) return;
  if (isWithClient(node)) return clientEnded(frame, node, { status: 'completed' });
  releaseReservation(frame.state, node, spent);
  speedUp(frame.state, node);
  settle(frame, node, { status: 'completed' });
}

export function attemptFailed(
  frame: StepFrame,
  { key, attempt, error, random, spent, question }: Input<'attempt_failed'>,
): void {
  const node = runningNode(frame.state, key, attempt);
  if (node === null) return;
  if (isWithClient(node)) return clientEnded(frame, node, { status: 'failed', error });
  releaseReservation(frame.state, node, error.beforeDispatch === true ? NOTHING_SPENT : spent);
  if (question === true) askQuestion(frame, node);
  else failAttempt(frame, node, error, random);
}

/** The attempt has ended with a question: the action gives its slot back, and waits for a person (J8). */
function askQuestion(frame: StepFrame, node: ActionNode): void {
  if (node.questions >= limits.questionsPerAction) {
    const message = `Action "${node.id}" asked more than ${limits.questionsPerAction} questions`;
    return settle(frame, node, { status: 'failed', error: { code: 'too_many_questions', message, retryable: false } });
  }
  node.questions += 1;
  frame.out.push({ type: 'clear_timer', timer: attemptTimer('timeout', node) });
  release(frame.state, node);
  askApproval(frame, node);
}

export function attemptTimedOut(frame: StepFrame, node: ActionNode, random: number): void {
  const { key, attempt } = node;
  const seconds = timeoutOf(node.declaration, node.policy) / 1000;
  frame.out.push({ type: 'abort', key, attempt, reason: 'timeout' });
  const message = `Action "${node.id}" did not finish within ${seconds} s`;
  failAttempt(frame, node, { code: 'timeout', message, retryable: true }, random);
}

function failAttempt(frame: StepFrame, node: ActionNode, error: ActionError, random: number): void {
  const { state, out } = frame;
  const { declaration, policy, key, attempt } = node;
  if (isOverload(error)) {
    const slowed = slowDown(state, node);
    if (slowed !== null) {
      const message = `"${slowed.name}" is overloaded: at most ${slowed.max} run at the same time now; the limit rises again as they succeed`;
      out.push({ type: 'warn', code: 'overloaded', message, key });
    }
  }
  const failed = attempt - node.questions;
  if (failed >= attemptsAllowed(declaration, policy, error)) return settle(frame, node, { status: 'failed', error });
  out.push({ type: 'clear_timer', timer: attemptTimer('timeout', node) });
  releaseReservation(state, node);
  release(state, node);
  setStage(state, node, 'retrying');
  const delayMs = retryDelayMs(declaration.retry ?? policy.retry, failed, error, random);
  out.push({ type: 'retry', key, attempt, delayMs, error });
  out.push({ type: 'set_timer', timer: attemptTimer('retry', node), delayMs });
}
