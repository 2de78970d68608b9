/**
 * The way of an action from its dependencies to its start: condition, policies, approval, earlier outcome, slot or client
 * (S2-S4).
 */
import { limits } from '../domain/limits.ts';
import { clientTimeoutOf } from './attempts.ts';
import { enqueue } from './ready.ts';
import { isBehind, setStage, settle } from './settle.ts';
import type { ActionNode, RunState } from './state.ts';
import type { StepFrame } from './step-frame.ts';
import type { Input } from './types.ts';

/** Advances a waiting action if nothing blocks it any more (S2, S3, S4). */
export function consider(frame: StepFrame, node: ActionNode): void {
  if (node.stage !== 'waiting') return;
  const { waitForAll } = node.declaration;
  if (node.doomedBy !== null) {
    const hopeless = waitForAll || (node.unmet === 0 && node.successes + node.nulls === 0);
    if (hopeless && (waitForAll || node.unresolved.length === 0)) {
      return settle(frame, node, { status: 'skipped', reason: 'dependency', because: node.doomedBy.id });
    }
  }
  if (node.unresolved.length > 0 || node.barred !== 'open') return;
  if (node.unmet > 0 && (waitForAll || node.successes === 0)) return;
  if (node.declaration.when === null) return prepare(frame, node);
  setStage(frame.state, node, 'evaluating');
  frame.out.push({ type: 'evaluate', key: node.key });
}

export function conditionEvaluated(frame: StepFrame, { key, result }: Input<'condition_evaluated'>): void {
  const node = frame.state.byKey.get(key);
  if (node?.stage !== 'evaluating') return;
  if (!result.ok) {
    const error = { code: 'condition_error', message: result.message, retryable: false };
    settle(frame, node, { status: 'failed', error });
  } else if (result.value) prepare(frame, node);
  else settle(frame, node, { status: 'skipped', reason: 'condition', because: null });
}

/** Its dependencies are met: holds it until its generation has ended (S14), lets policies decide (C9), or continues. */
export function prepare(frame: StepFrame, node: ActionNode): void {
  const { state } = frame;
  const { generation } = state;
  if (
    node.policy.dispatch === 'after_generation' &&
    generation?.streaming === true &&
    generation.iteration === node.iteration
  ) {
    return setStage(state, node, 'held');
  }
  if (node.policy.judged !== undefined) return judge(frame, node, node.policy.judged);
  proceedTo(frame, node, node.policy.needsApproval ? 'ask' : 'start');
}

/** Its parameters are final from here on: what is judged is what a person is asked about, and what runs (C9). */
function judge(frame: StepFrame, node: ActionNode, target: string): void {
  const { judged } = frame.state;
  setStage(frame.state, node, 'judging');
  const ofTarget = judged.get(target);
  if (ofTarget === undefined) judged.set(target, [node]);
  else ofTarget.push(node);
  frame.out.push({ type: 'judge', key: node.key });
}

export function policyJudged(frame: StepFrame, { key, result }: Input<'policy_judged'>): void {
  const node = frame.state.byKey.get(key);
  if (node?.stage !== 'judging') return;
  if (typeof result === 'string') proceedTo(frame, node, result);
  else settle(frame, node, { status: 'failed', error: result.error });
}

function proceedTo(frame: StepFrame, node: ActionNode, next: 'ask' | 'start'): void {
  if (next === 'ask') askApproval(frame, node);
  else lookup(frame, node);
}

/** Asks a person before the first attempt, or after one that has ended with a question (J8). */
export function askApproval(frame: StepFrame, node: ActionNode): void {
  const { key, attempt } = node;
  setStage(frame.state, node, 'asking');
  frame.out.push({ type: 'ask_approval', key, attempt });
  frame.out.push({ type: 'set_timer', timer: `approval:${key}`, delayMs: limits.approvalExpiryMs });
}

/**
 * Nothing blocks it any more: first looks up whether an earlier outcome can be reused. This needs no slot, so a hit
 * completes at once, however busy the run is (P6). Also after the answer to a question: an equal action may have completed
 * in the meantime.
 */
export function lookup(frame: StepFrame, node: ActionNode): void {
  if (node.policy.reuse !== true) return proceed(frame, node);
  setStage(frame.state, node, 'recalling');
  if (isBehind(frame.state, node)) setStage(frame.state, node, 'behind');
  frame.out.push({ type: 'lookup', key: node.key });
}

export function recalled(frame: StepFrame, { key, found }: Input<'recalled'>): void {
  const node = frame.state.byKey.get(key);
  if (node?.stage !== 'recalling' && node?.stage !== 'behind') return;
  if (found === 'nothing') proceed(frame, node);
  else if (found === 'outcome') settle(frame, node, { status: 'completed' });
  else settle(frame, node, { status: 'failed', error: found.error });
}

/** It may start: now, if the client executes it, or else when a slot is free. */
function proceed(frame: StepFrame, node: ActionNode): void {
  if (node.policy.byClient === true) callClient(frame, node);
  else makeReady(frame.state, node);
}

/** It starts when a slot is free: the first time, or after a backoff. */
export function makeReady(state: RunState, node: ActionNode): void {
  setStage(state, node, 'ready');
  enqueue(state, node);
}

/** Asks the engine to show the call to the client (C3). It needs no slot, and there is no other attempt. */
function callClient(frame: StepFrame, node: ActionNode): void {
  node.attempt += 1;
  const { key, attempt } = node;
  const timeoutMs = clientTimeoutOf(node.policy);
  setStage(frame.state, node, 'calling');
  frame.out.push({ type: 'call_client', key, attempt, timeoutMs });
  frame.out.push({ type: 'set_timer', timer: `client:${key}`, delayMs: timeoutMs });
}
