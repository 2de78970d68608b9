/**
 * The scheduler: decides what happens in a run. It has no side effects.
 *
 * `step(state, input)` takes one input and returns the resulting commands. It has no clock, no randomness and no I/O
 * (S1): time and random numbers are fields of the inputs, so the same inputs always give the same commands.
 *
 * It is one state machine. Each duty has a file, and imports go downwards only:
 *  - `step`: takes an input and applies its consequences;
 *  - `loop`: iterations, and the end of a generation; `end-run`: the end, a cancel, the time budget;
 *  - `declare`: admits or refuses declared actions; `bind`: names that are declared later;
 *  - `dispatch`: attempts; `waiting`: approvals, calls of clients, parking; `propagate`: dependents of what has settled;
 *  - `prepare`: from met dependencies to a start; `settle`: stages and ends of actions;
 *  - `graph`, `ready`, `attempts`, `budgets`, `verdict`, `finality`: what the above ask.
 *
 * Owns the state of every action and of the loop: graph, ready set, attempts, budgets, finality.
 * Does not own values: results, variables and feeds belong to the engine.
 *
 * `step` updates the given state in place and returns it. A caller uses only the returned state. It is rebuilt from the
 * recorded inputs; there is no other stored form (J9).
 *
 * Invariants:
 *  1. An action is settled exactly once (S10). `queue` is its first command, except that a rejected action is only
 *     settled. It is queued again only if a second declaration adds its parameters (P6).
 *  2. An action starts after all its dependencies have settled (S3, S4), never twice at the same time, and never after
 *     it has settled.
 *  3. At most `maxParallelActions` actions that need a slot run at once, at most `concurrency` of one target and
 *     `maxParallelByType` of one type, fewer after an overload. No slot is idle while an action that may use it is
 *     ready (S5).
 *  4. Only the running attempt can change its action: reports of older attempts and timers are ignored without a
 *     command (S7).
 *  5. Every started attempt has a timer, and ends by its outcome, its timer or an abort (S8). So does every call of a
 *     client, which uses no slot and is the only attempt of its action (C3).
 *  6. An iteration completes when its stream has ended and its awaited actions have settled (S11). Exactly one
 *     `complete_iteration` follows each `start_iteration`; a run that is cancelled or overtime completes it early.
 *  7. `end_run` is sent once with a terminal status; before that, any number of times with `waiting`. `drained` is the
 *     last command and is sent once.
 *  8. The work per input is proportional to what it changes: no search over all actions, except at the end of a
 *     generation (over that generation), on a cancel, at the first overload of a target, and over actions that share an
 *     idempotency key when one of them begins or ends to wait for a person or a client.
 */
import { closeResponse, declare, refuse } from './declare.ts';
import { attemptFailed, attemptSucceeded, attemptTimedOut, dispatch } from './dispatch.ts';
import { cancelRun, cancelWaiting, timeBudgetEnded } from './end-run.ts';
import { answerChecked, endGeneration, review, startRun } from './loop.ts';
import { conditionEvaluated, makeReady, policyJudged, recalled } from './prepare.ts';
import { propagate } from './propagate.ts';
import type { RunState } from './state.ts';
import type { StepFrame } from './step-frame.ts';
import type { Input, SchedulerCommand, SchedulerInput } from './types.ts';
import {
  approvalAsked,
  approvalExpired,
  approvalResolved,
  clientCalled,
  clientExpired,
  generationIdle,
  resume,
} from './waiting.ts';

export { initialState } from './state.ts';
export type { RunState } from './state.ts';
export {
  action,
  bindings,
  callsBefore,
  counts,
  dependenciesOf,
  generationTokens,
  isFireAndForget,
  isAtRest,
  isBlockedByOthers,
  lacksAnswers,
  lookup,
  statusOf,
  usedBy,
} from './queries.ts';

/**
 * Processes one input.
 *
 * @param state the result of the previous step; updated in place
 * @param expectsMore more answers of people and clients follow at once, so the run does not wait yet
 * @returns the next state, and the commands in execution order
 * @throws EngineError `internal` for an impossible input, such as a declaration outside a generation
 * @see docs/scheduling.md
 */
export function step(
  state: RunState,
  input: SchedulerInput,
  expectsMore = false,
): { state: RunState; commands: SchedulerCommand[] } {
  const frame: StepFrame = { state, at: input.at, out: [], settled: [], expectsMore };
  take(frame, input);
  advance(frame);
  return { state, commands: frame.out };
}

const TEXT_INPUTS: ReadonlySet<SchedulerInput['type']> = new Set([
  'action_declared',
  'action_refused',
  'response_closed',
  'generation_ended',
]);

function take(frame: StepFrame, input: SchedulerInput): void {
  // More text has arrived, so the run no longer waits for others only.
  if (frame.state.generation?.streaming === true && TEXT_INPUTS.has(input.type)) resume(frame);
  switch (input.type) {
    case 'run_started':
      return startRun(frame, input);
    case 'action_declared':
      return declare(frame, input.action, input.policy);
    case 'action_refused':
      return refuse(frame, input.rejection);
    case 'response_closed':
      return closeResponse(frame, input);
    case 'generation_ended':
      return endGeneration(frame, input);
    case 'answer_checked':
      return answerChecked(frame, input);
    case 'generation_idle':
      return generationIdle(frame);
    case 'condition_evaluated':
      return conditionEvaluated(frame, input);
    case 'policy_judged':
      return policyJudged(frame, input);
    case 'recalled':
      if (frame.state.byKey.get(input.key)?.stage === 'behind') resume(frame);
      return recalled(frame, input);
    case 'attempt_succeeded':
      return attemptSucceeded(frame, input);
    case 'attempt_failed':
      return attemptFailed(frame, input);
    case 'timer_fired':
      return timerFired(frame, input);
    case 'client_called':
      return clientCalled(frame, input);
    case 'approval_asked':
      return approvalAsked(frame, input);
    case 'approval_resolved':
      return approvalResolved(frame, input);
    case 'usage_recorded':
      frame.state.tokens += input.tokens;
      frame.state.cost += input.cost ?? 0;
      return;
    case 'cancel_requested':
      return input.only === 'waiting' ? cancelWaiting(frame, input.reason) : cancelRun(frame, input.reason);
  }
}

/** Applies all consequences: cascades, starts, the end of the iteration or of the run. */
function advance(frame: StepFrame): void {
  const { state } = frame;
  propagateAndDispatch(frame);
  const wasLive = state.phase === 'live';
  review(frame);
  if (state.phase !== 'ended') return;
  // fire_and_forget actions now have the slots to themselves (S5).
  if (wasLive) propagateAndDispatch(frame);
  if (state.open + state.openBackground > 0) return;
  state.phase = 'drained';
  frame.out.push({ type: 'drained' });
}

function propagateAndDispatch(frame: StepFrame): void {
  do {
    propagate(frame);
    dispatch(frame);
  } while (frame.settled.length > 0);
}

function timerFired(frame: StepFrame, { timer, random }: Input<'timer_fired'>): void {
  if (timer === 'budget') return timeBudgetEnded(frame);
  const [kind, rest = ''] = timer.split(':', 2);
  const [key = '', attempt] = rest.split('#', 2);
  const node = frame.state.byKey.get(key);
  if (node === undefined) return;
  if (kind === 'approval') return approvalExpired(frame, node);
  if (kind === 'client') return clientExpired(frame, node);
  // The timer of an earlier attempt.
  if (node.attempt !== Number(attempt)) return;
  if (kind === 'timeout' && node.stage === 'running') attemptTimedOut(frame, node, random ?? 1);
  else if (kind === 'retry' && node.stage === 'retrying') makeReady(frame.state, node);
}
