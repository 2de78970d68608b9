/**
 * The scheduler: decides what happens in a run. It has no side effects.
 *
 * `step(state, input)` takes one input and returns the resulting commands. It has no clock, no randomness and no I/O
 * (S1): time and random numbers are fields of the inputs, so the same inputs always give the same commands.
 *
 * The file is long because it is one state machine: declaring, starting, settling and ending call each other.
 * Separate duties have their own files: `graph`, `ready`, `attempts`, `budgets`, `verdict`, `finality`.
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
 *     generation (over that generation), on a cancel, and at the first overload of a target.
 */
import { actionSpec } from '../domain/action-types.ts';
import type { ActionDeclaration, ActionError, ActionRejection, ActionPolicy, RejectionCode } from '../domain/action.ts';
import { EngineError } from '../domain/errors.ts';
import type { RunError } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';
import type { ChildBudget } from '../domain/ports.ts';
import { NOTHING_SPENT } from '../domain/spent.ts';
import { attemptsAllowed, clientTimeoutOf, isOverload, retryDelayMs, timeoutOf } from './attempts.ts';
import {
  armBudget,
  budgetError,
  callsLeft,
  disarmBudget,
  exceed,
  exceedCost,
  releaseReservation,
  shortageOf,
  reserve,
  tokensLeft,
} from './budgets.ts';
import {
  countSettled,
  dependencyAtEnd,
  dependencyCycle,
  dependencyOf,
  exemptFromBarriers,
  liftBarrier,
  link,
  pathBetween,
  placeBehindBarriers,
  producerOf,
  register,
  registerName,
  unknownDependency,
} from './graph.ts';
import { newNode, sameAction, placeholder, placeholderPolicy } from './node.ts';
import { isBlockedByOthers } from './queries.ts';
import { dequeue, enqueue, limit, release, slowDown, speedUp, takeNext } from './ready.ts';
import { newGeneration } from './state.ts';
import type { ActionNode, Generation, RunState, Stage } from './state.ts';
import type { StepFrame } from './step-frame.ts';
import type { SchedulerCommand, SchedulerInput, Settlement } from './types.ts';
import { brokeOff, judge, needsCheck } from './verdict.ts';

export { initialState } from './state.ts';
export type { RunState } from './state.ts';
export {
  action,
  bindings,
  counts,
  dependenciesOf,
  generationTokens,
  isFireAndForget,
  isAtRest,
  isBlockedByOthers,
  lookup,
  statusOf,
} from './queries.ts';

type Input<Type extends SchedulerInput['type']> = Extract<SchedulerInput, { type: Type }>;

/**
 * Processes one input.
 *
 * @param state the result of the previous step; updated in place
 * @returns the next state, and the commands in execution order
 * @throws EngineError `internal` for an impossible input, such as a declaration outside a generation
 * @see docs/scheduling.md
 */
export function step(state: RunState, input: SchedulerInput): { state: RunState; commands: SchedulerCommand[] } {
  const frame: StepFrame = { state, at: input.at, out: [], settled: [] };
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
    case 'recalled':
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

// --- declaring ---------------------------------------------------------------------------------

function declare(frame: StepFrame, action: ActionDeclaration, policy: ActionPolicy): void {
  const { state } = frame;
  const generation = openGeneration(state);
  if (generation === null) return;
  const namesake = state.ids.get(action.id);
  if (namesake?.iteration === generation.iteration && namesake.admitted) {
    return declareAgain(frame, generation, namesake, action, policy);
  }
  const node = addNode(state, generation, action, policy, false);
  const refusal = refusalOf(frame, generation, node);
  if (refusal !== null) return rejectAtOnce(frame, generation, node, refusal.code, refusal.message);

  const dependencies: ActionNode[] = [];
  let unknown: Set<string> | null = null;
  const mark = ++state.mark;
  const dependOn = (dependency: ActionNode): void => {
    if (dependency.mark === mark) return;
    dependency.mark = mark;
    dependencies.push(dependency);
  };
  for (const name of action.dependsOn ?? []) {
    const dependency = dependencyOf(state, generation, name);
    if (dependency !== null) dependOn(dependency);
    else if (name === node.id) {
      if (namesake === undefined) {
        return rejectAtOnce(frame, generation, node, 'dependency_cycle', dependencyCycle(node, []));
      }
      dependOn(namesake);
    } else (unknown ??= new Set<string>()).add(name);
  }
  const bound: (readonly [string, ActionNode])[] = [];
  for (const name of action.references) {
    if (unknown?.has(name) === true) continue;
    const producer = producerOf(state, name);
    if (producer === null) continue;
    bound.push([name, producer]);
    dependOn(producer);
  }

  const waiters = generation.pending.get(action.id);
  if (waiters !== undefined) {
    const cycle = pathBetween(state, dependencies, waiters);
    if (cycle !== null) return rejectAtOnce(frame, generation, node, 'dependency_cycle', dependencyCycle(node, cycle));
  }

  admit(state, node);
  register(state, node);
  registerName(state, node);
  if (bound.length > 0) node.bound = bound;
  if (unknown !== null) {
    node.unresolved = [...unknown];
    for (const name of unknown) {
      const others = generation.pending.get(name);
      if (others === undefined) generation.pending.set(name, [node]);
      else others.push(node);
    }
  }
  node.dependencies = dependencies;
  for (const dependency of dependencies) {
    awaited(frame, dependency);
    link(state, node, dependency);
  }
  placeBehindBarriers(generation, node);
  if (unknown === null) queue(frame, node);
  if (waiters !== undefined) bindWaiters(frame, generation, node);
  if (generation.failedFast) settle(frame, node, { status: 'cancelled', reason: 'fail_fast' });
  else if (generation.stopped) settle(frame, node, { status: 'cancelled', reason: 'budget_exceeded' });
  else consider(frame, node);
}

/** An id was repeated in one generation (P6): the same action is ignored, a different one is rejected. */
function declareAgain(
  frame: StepFrame,
  generation: Generation,
  first: ActionNode,
  action: ActionDeclaration,
  policy: ActionPolicy,
): void {
  if (sameAction(first.declaration, action)) {
    const message = `Action "${action.id}" was declared twice with the same content; the second one is ignored`;
    frame.out.push({ type: 'warn', code: 'duplicate_action', message, key: first.key });
    return;
  }
  if (isReplaceable(frame.state, first, action, policy)) return replace(frame, first, action, policy);
  const node = addNode(frame.state, generation, action, policy, false);
  const message = `The id "${action.id}" is already used in this generation; choose another`;
  settle(frame, node, { status: 'rejected', code: 'duplicate_id', message });
}

/**
 * Whether a second declaration only adds the parameters of the first one, which has none, has not started or asked for
 * an approval, and which nothing depends on. What it refers to was declared before the first one, so no cycle closes.
 */
function isReplaceable(state: RunState, first: ActionNode, action: ActionDeclaration, policy: ActionPolicy): boolean {
  const { declaration, stage } = first;
  const { parameters, references } = declaration;
  if (Object.keys(parameters).length > 0 || first.dependents.length > 0 || policy.refusal !== null) return false;
  if (!sameAction(declaration, { ...action, parameters, references, repaired: declaration.repaired })) return false;
  const producers = action.references.map((name) => producerOf(state, name));
  if (producers.some((producer) => producer !== null && producer.index >= first.index)) return false;
  if (stage === 'waiting') return true;
  return (
    (stage === 'held' || stage === 'ready') &&
    producers.every((producer) => producer === null || producer.stage === 'settled')
  );
}

/** The second declaration of an id takes the place of the first one, which is queued again with its parameters. */
function replace(frame: StepFrame, node: ActionNode, action: ActionDeclaration, policy: ActionPolicy): void {
  const { state, out } = frame;
  const message = `Action "${node.id}" was declared without parameters, and again with them: the second declaration counts`;
  out.push({ type: 'warn', code: 'duplicate_action', message, key: node.key });
  node.declaration = action;
  node.policy = policy;
  for (const name of action.references) {
    const producer = producerOf(state, name);
    if (producer === null) continue;
    node.bound = [...node.bound, [name, producer]];
    if (node.dependencies.includes(producer)) continue;
    awaited(frame, producer);
    node.dependencies = [...node.dependencies, producer];
    link(state, node, producer);
  }
  if (!node.queued) return;
  node.queued = false;
  if (state.generation !== null) state.generation.accepted -= 1;
  queue(frame, node);
  consider(frame, node);
}

function refuse(frame: StepFrame, rejection: ActionRejection): void {
  const { state } = frame;
  const generation = openGeneration(state);
  if (generation === null) return;
  const node = addNode(state, generation, placeholder(rejection), placeholderPolicy, true);
  const namesake = state.ids.get(node.id);
  if (namesake !== undefined && namesake.iteration === generation.iteration) {
    settle(frame, node, { status: 'rejected', code: rejection.code, message: rejection.message });
  } else rejectAtOnce(frame, generation, node, rejection.code, rejection.message);
}

/** Rejects an action that was never admitted; updates the actions that wait for its id. */
function rejectAtOnce(
  frame: StepFrame,
  generation: Generation,
  node: ActionNode,
  code: RejectionCode,
  message: string,
): void {
  register(frame.state, node);
  settle(frame, node, { status: 'rejected', code, message });
  if (generation.pending.has(node.id)) bindWaiters(frame, generation, node);
}

function refusalOf(
  frame: StepFrame,
  generation: Generation,
  node: ActionNode,
): { readonly code: RejectionCode; readonly message: string } | null {
  const { state } = frame;
  if (generation.last) {
    return {
      code: 'not_allowed',
      message: `Action "${node.id}" was not run: this is the last generation of the run, which may only answer`,
    };
  }
  const { maxActions } = state.policy;
  const taken = state.admittedActions + state.reserved.actions;
  if (taken >= maxActions) {
    exceed(frame, 'actions', maxActions, taken + 1);
    return {
      code: 'budget_exceeded',
      message: `Action "${node.id}" was not run: a run may declare ${maxActions} actions`,
    };
  }
  return node.policy.refusal;
}

/** The open generation; null if the run has ended, so that late input is ignored. */
function openGeneration({ phase, generation }: RunState): Generation | null {
  if (phase === 'ended' || phase === 'drained') return null;
  if (generation?.streaming === true) return generation;
  throw new EngineError('internal', 'The scheduler received protocol text outside a generation');
}

function addNode(
  state: RunState,
  generation: Generation,
  action: ActionDeclaration,
  policy: ActionPolicy,
  refused: boolean,
): ActionNode {
  const node = newNode(state, generation.iteration, action, policy, refused);
  state.nodes.push(node);
  state.byKey.set(node.key, node);
  generation.nodes.push(node);
  return node;
}

function admit(state: RunState, node: ActionNode): void {
  node.admitted = true;
  state.admittedActions += 1;
  if (node.mode === 'fire_and_forget') state.openBackground += 1;
  else state.open += 1;
  limit(state, node);
}

function queue(frame: StepFrame, node: ActionNode): void {
  if (node.queued) return;
  node.queued = true;
  const { generation } = frame.state;
  if (generation?.iteration === node.iteration) generation.accepted += 1;
  frame.out.push({ type: 'queue', key: node.key, dependsOn: node.dependencies.map(({ key }) => key) });
}

/** A fire_and_forget action that another action waits for becomes async (S4). */
function awaited(frame: StepFrame, node: ActionNode): void {
  if (node.mode !== 'fire_and_forget' || !node.admitted) return;
  const { state } = frame;
  const { heap, stage } = node;
  if (heap !== null) dequeue(state, node);
  node.mode = 'async';
  if (stage !== 'settled') {
    state.openBackground -= 1;
    state.open += 1;
    if (isActive(stage)) {
      state.active += 1;
      state.activeBackground -= 1;
    }
    if (isAsking(stage)) state.asking += 1;
  }
  if (heap !== null) enqueue(state, node);
  const message = `Action "${node.id}" is fire_and_forget, but another action or the response needs it: it runs as async`;
  frame.out.push({ type: 'warn', code: 'fire_and_forget_awaited', message, key: node.key });
}

/** Binds everything that waited for the declaration of this id (S3). */
function bindWaiters(frame: StepFrame, generation: Generation, node: ActionNode): void {
  const waiters = (generation.pending.get(node.id) ?? []).filter(({ stage }) => stage === 'waiting');
  generation.pending.delete(node.id);
  if (waiters.length === 0) return;
  for (const waiter of waiters) bindLate(frame, waiter, node.id, node);
  if (node.stage !== 'settled') {
    for (const freed of exemptFromBarriers(frame.state, generation, waiters, node)) consider(frame, freed);
  }
  for (const waiter of waiters) {
    if (waiter.unresolved.length > 0) continue;
    queue(frame, waiter);
    consider(frame, waiter);
  }
}

function bindLate(frame: StepFrame, waiter: ActionNode, name: string, dependency: ActionNode): void {
  waiter.unresolved = waiter.unresolved.filter((other) => other !== name);
  // A name in `depends_on` may also be used in references, even if it is declared later (P12).
  const { references } = waiter.declaration;
  const { outputKey } = dependency.declaration;
  for (const reference of references) {
    if (reference === outputKey || reference === name || reference === dependency.id) {
      const others = waiter.bound.filter(([other]) => other !== reference);
      waiter.bound = [...others, [reference, dependency]];
    }
  }
  if (waiter.dependencies.includes(dependency)) return;
  awaited(frame, dependency);
  waiter.dependencies = [...waiter.dependencies, dependency];
  link(frame.state, waiter, dependency);
}

function closeResponse(frame: StepFrame, { final, refers, hasReferences = false }: Input<'response_closed'>): void {
  const { state } = frame;
  const generation = openGeneration(state);
  if (generation === null) return;
  const producers: ActionNode[] = [];
  for (const key of refers) {
    const node = state.byKey.get(key);
    if (node === undefined) continue;
    awaited(frame, node);
    producers.push(node);
  }
  generation.responses.push({ final, refers: producers, hasReferences });
}

// --- becoming ready --------------------------------------------------------------------------------

/** Advances a waiting action if nothing blocks it any more (S2, S3, S4). */
function consider(frame: StepFrame, node: ActionNode): void {
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

function conditionEvaluated(frame: StepFrame, { key, result }: Input<'condition_evaluated'>): void {
  const node = frame.state.byKey.get(key);
  if (node?.stage !== 'evaluating') return;
  if (!result.ok) {
    const error = { code: 'condition_error', message: result.message, retryable: false };
    settle(frame, node, { status: 'failed', error });
  } else if (result.value) prepare(frame, node);
  else settle(frame, node, { status: 'skipped', reason: 'condition', because: null });
}

/** Its dependencies are met: holds it until its generation has ended (S14), asks for approval (J8), or continues. */
function prepare(frame: StepFrame, node: ActionNode): void {
  const { state } = frame;
  const { generation } = state;
  if (
    node.policy.dispatch === 'after_generation' &&
    generation?.streaming === true &&
    generation.iteration === node.iteration
  ) {
    return setStage(state, node, 'held');
  }
  if (!node.policy.needsApproval) return lookup(frame, node);
  setStage(state, node, 'asking');
  frame.out.push({ type: 'ask_approval', key: node.key });
  frame.out.push({ type: 'set_timer', timer: `approval:${node.key}`, delayMs: limits.approvalExpiryMs });
}

function approvalAsked(frame: StepFrame, { key, error }: Input<'approval_asked'>): void {
  const node = frame.state.byKey.get(key);
  if (node?.stage !== 'asking') return;
  if (error === null) setStage(frame.state, node, 'approval');
  else settle(frame, node, { status: 'failed', error });
}

function approvalResolved(frame: StepFrame, { key, approved, note }: Input<'approval_resolved'>): void {
  const node = frame.state.byKey.get(key);
  if (node?.stage !== 'approval') return;
  resume(frame);
  if (approved) {
    frame.out.push({ type: 'clear_timer', timer: `approval:${key}` });
    lookup(frame, node);
  } else
    deny(frame, node, note === null ? `Action "${node.id}" was denied` : `Action "${node.id}" was denied: ${note}`);
}

function deny(frame: StepFrame, node: ActionNode, message: string): void {
  settle(frame, node, { status: 'failed', error: { code: 'approval_denied', message, retryable: false } });
}

/**
 * Nothing blocks it any more: first looks up whether an earlier outcome can be reused. This needs no slot, so a hit
 * completes at once, however busy the run is (P6).
 */
function lookup(frame: StepFrame, node: ActionNode): void {
  if (node.policy.reuse !== true) return proceed(frame, node);
  setStage(frame.state, node, 'recalling');
  frame.out.push({ type: 'lookup', key: node.key });
}

function recalled(frame: StepFrame, { key, found }: Input<'recalled'>): void {
  const node = frame.state.byKey.get(key);
  if (node?.stage !== 'recalling') return;
  if (found === 'nothing') proceed(frame, node);
  else if (found === 'outcome') settle(frame, node, { status: 'completed' });
  else settle(frame, node, { status: 'failed', error: found.error });
}

/** It may start: now, if the client executes it, or else when a slot is free. */
function proceed(frame: StepFrame, node: ActionNode): void {
  if (node.policy.byClient === true) callClient(frame, node);
  else makeReady(frame.state, node);
}

function makeReady(state: RunState, node: ActionNode): void {
  setStage(state, node, 'ready');
  enqueue(state, node);
}

// --- calls of clients (C3) --------------------------------------------------------------------------

function callClient(frame: StepFrame, node: ActionNode): void {
  node.attempt += 1;
  const { key, attempt } = node;
  const timeoutMs = clientTimeoutOf(node.policy);
  setStage(frame.state, node, 'calling');
  frame.out.push({ type: 'call_client', key, attempt, timeoutMs });
  frame.out.push({ type: 'set_timer', timer: `client:${key}`, delayMs: timeoutMs });
}

function clientCalled({ state }: StepFrame, { key }: Input<'client_called'>): void {
  const node = state.byKey.get(key);
  if (node?.stage === 'calling') setStage(state, node, 'awaiting_client');
}

/** The client's result, or why the call cannot be shown to it: there is no other attempt. */
function clientEnded(frame: StepFrame, node: ActionNode, settlement: Settlement): void {
  resume(frame);
  settle(frame, node, settlement);
}

function isWithClient({ stage }: ActionNode): boolean {
  return stage === 'calling' || stage === 'awaiting_client';
}

// --- attempts --------------------------------------------------------------------------------------

/** Starts actions while slots are free, most urgent first (S2, S5). */
function dispatch(frame: StepFrame): void {
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

/** The name includes the attempt, so a timer that fires while it is being cleared cannot affect the next attempt. */
function attemptTimer(kind: 'timeout' | 'retry', { key, attempt }: ActionNode): string {
  return `${kind}:${key}#${attempt}`;
}

function runningNode(state: RunState, key: string, attempt: number): ActionNode | null {
  const node = state.byKey.get(key);
  if (node === undefined || node.attempt !== attempt) return null;
  return node.stage === 'running' || isWithClient(node) ? node : null;
}

function attemptSucceeded(frame: StepFrame, { key, attempt, spent }: Input<'attempt_succeeded'>): void {
  const node = runningNode(frame.state, key, attempt);
  if (node === null) return;
  if (isWithClient(node)) return clientEnded(frame, node, { status: 'completed' });
  releaseReservation(frame.state, node, spent);
  speedUp(frame.state, node);
  settle(frame, node, { status: 'completed' });
}

function attemptFailed(frame: StepFrame, { key, attempt, error, random, spent }: Input<'attempt_failed'>): void {
  const node = runningNode(frame.state, key, attempt);
  if (node === null) return;
  if (isWithClient(node)) return clientEnded(frame, node, { status: 'failed', error });
  releaseReservation(frame.state, node, error.beforeDispatch === true ? NOTHING_SPENT : spent);
  failAttempt(frame, node, error, random);
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
  if (attempt >= attemptsAllowed(declaration, policy, error)) return settle(frame, node, { status: 'failed', error });
  out.push({ type: 'clear_timer', timer: attemptTimer('timeout', node) });
  releaseReservation(state, node);
  release(state, node);
  setStage(state, node, 'retrying');
  const delayMs = retryDelayMs(declaration.retry ?? policy.retry, attempt, error, random);
  out.push({ type: 'retry', key, attempt, delayMs, error });
  out.push({ type: 'set_timer', timer: attemptTimer('retry', node), delayMs });
}

function timerFired(frame: StepFrame, { timer, random }: Input<'timer_fired'>): void {
  if (timer === 'budget') return timeBudgetEnded(frame);
  const [kind, rest = ''] = timer.split(':', 2);
  const [key = '', attempt] = rest.split('#', 2);
  const node = frame.state.byKey.get(key);
  if (node === undefined) return;
  if (kind === 'approval') {
    if (node.stage !== 'approval') return;
    resume(frame);
    deny(frame, node, `Action "${node.id}" was not approved in time`);
  } else if (kind === 'client') {
    if (!isWithClient(node)) return;
    const seconds = clientTimeoutOf(node.policy) / 1000;
    if (node.stage === 'calling') frame.out.push({ type: 'abort', key, attempt: node.attempt, reason: 'timeout' });
    const message = `The client did not answer the call of action "${node.id}" within ${seconds} s`;
    clientEnded(frame, node, { status: 'failed', error: { code: 'timeout', message, retryable: false } });
  } else if (node.attempt !== Number(attempt)) {
    return;
  } else if (kind === 'timeout' && node.stage === 'running') {
    const seconds = timeoutOf(node.declaration, node.policy) / 1000;
    frame.out.push({ type: 'abort', key, attempt: node.attempt, reason: 'timeout' });
    const message = `Action "${node.id}" did not finish within ${seconds} s`;
    failAttempt(frame, node, { code: 'timeout', message, retryable: true }, random ?? 1);
  } else if (kind === 'retry' && node.stage === 'retrying') {
    makeReady(frame.state, node);
  }
}

// --- settling --------------------------------------------------------------------------------------

/** Ends an action, once (S10). `propagate` updates its dependents. */
function settle(frame: StepFrame, node: ActionNode, settlement: Settlement): void {
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

/** Updates dependents and barriers of everything that has settled, in cascade. */
function propagate(frame: StepFrame): void {
  const { state, settled } = frame;
  for (const node of settled) {
    for (const dependent of node.dependents) {
      if (dependent.stage !== 'waiting') continue;
      dependent.unmet -= 1;
      countSettled(dependent, node);
      consider(frame, dependent);
    }
    const { generation } = state;
    // A sync action settles in its own iteration, which waits for it.
    if (generation !== null && node.declaration.mode === 'sync') {
      for (const freed of liftBarrier(generation, node)) consider(frame, freed);
    }
    if (node.settlement?.status === 'failed') failFast(frame, node);
  }
  settled.length = 0;
}

function failFast(frame: StepFrame, node: ActionNode): void {
  const { state } = frame;
  if (!state.policy.failFast || node.satisfied || node.mode === 'fire_and_forget') return;
  if (state.generation !== null) state.generation.failedFast = true;
  for (const other of state.nodes) cancel(frame, other, 'fail_fast');
}

/** Ends an action that has not settled. A running attempt is aborted and not awaited. */
function cancel(frame: StepFrame, node: ActionNode, reason: string): void {
  if (node.stage === 'settled') return;
  const { key, attempt, stage } = node;
  if (stage === 'running' || stage === 'calling') frame.out.push({ type: 'abort', key, attempt, reason });
  settle(frame, node, { status: 'cancelled', reason });
}

function setStage(state: RunState, node: ActionNode, stage: Stage): void {
  const change = Number(isActive(stage)) - Number(isActive(node.stage));
  if (node.admitted && node.mode === 'fire_and_forget') state.activeBackground += change;
  else if (node.admitted) {
    state.active += change;
    state.asking += Number(isAsking(stage)) - Number(isAsking(node.stage));
  }
  node.stage = stage;
}

/** Whether the action runs or will proceed on its own. */
function isActive(stage: Stage): boolean {
  return stage !== 'waiting' && !isAsking(stage) && stage !== 'settled';
}

/** Whether the action waits for a person or a client. */
function isAsking(stage: Stage): boolean {
  return stage === 'approval' || stage === 'awaiting_client';
}

// --- the end of a generation -------------------------------------------------------------------------

function endGeneration(frame: StepFrame, { finish, answered, error }: Input<'generation_ended'>): void {
  const { state } = frame;
  const generation = openGeneration(state);
  if (generation === null) return;
  generation.streaming = false;
  generation.finish = finish;
  generation.error = error;
  generation.answered = answered;
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

function hasStarted(node: ActionNode): boolean {
  return node.attempt > 0;
}

/** Nothing more will be declared: binds every open `depends_on` name or rejects it as unknown (S3). */
function bindRemaining(frame: StepFrame, generation: Generation): void {
  const { state } = frame;
  generation.pending.clear();
  for (const node of generation.nodes) {
    if (node.stage !== 'waiting' || node.unresolved.length === 0) continue;
    const names = node.unresolved;
    const found = new Map<string, ActionNode>();
    for (const name of names) {
      const dependency = dependencyAtEnd(state, node, name);
      if (dependency !== null) found.set(name, dependency);
    }
    const unknown = names.filter((name) => !found.has(name));
    if (unknown.length > 0) {
      const message = unknownDependency(state, node, unknown);
      settle(frame, node, { status: 'rejected', code: 'unknown_dependency', message });
      continue;
    }
    const cycle = pathBetween(state, [...found.values()], [node]);
    if (cycle !== null) {
      const message = dependencyCycle(node, cycle.slice(0, -1));
      settle(frame, node, { status: 'rejected', code: 'dependency_cycle', message });
      continue;
    }
    for (const [name, dependency] of found) {
      bindLate(frame, node, name, dependency);
      if (dependency.stage === 'settled') continue;
      for (const freed of exemptFromBarriers(state, generation, [node], dependency)) consider(frame, freed);
    }
    queue(frame, node);
    consider(frame, node);
  }
}

// --- the loop ----------------------------------------------------------------------------------------

function startRun(frame: StepFrame, { policy, at }: Input<'run_started'>): void {
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

/** Completes the iteration if nothing of it is open, or parks the run if only people and clients can advance it. */
function review(frame: StepFrame): void {
  const { state } = frame;
  const { generation, phase } = state;
  if (phase !== 'live' || generation === null || generation.streaming) return;
  if (state.open === 0) completeIteration(frame, generation);
  else if (state.active === 0 && state.asking > 0) park(frame);
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

function answerChecked({ state }: StepFrame, { missing, pending }: Input<'answer_checked'>): void {
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

// --- the time budget ----------------------------------------------------------------------------------

/**
 * The time budget is used up: awaited work is cancelled and the model gets one last generation with its own deadline.
 * When that has passed too, or there is no model, the run ends.
 */
function timeBudgetEnded(frame: StepFrame): void {
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

/** A started fire_and_forget action belongs to the session (S4); no budget cancels it. */
function isLeftRunning(node: ActionNode): boolean {
  return node.mode === 'fire_and_forget' && hasStarted(node);
}

// --- waiting for people and clients (J8, C3) ------------------------------------------------------------------------

/** Only approvals and results of clients can advance the run: its stream may end, and the time budget stops counting. */
function park(frame: StepFrame): void {
  const { state, at } = frame;
  state.phase = 'parked';
  state.elapsedMs += at - state.since;
  disarmBudget(frame);
  frame.out.push({ type: 'end_run', status: 'waiting', error: null });
}

/** The text continues only after an approval or a client's result, which is awaited as at the end of a text. */
function generationIdle(frame: StepFrame): void {
  if (isBlockedByOthers(frame.state)) park(frame);
}

function resume(frame: StepFrame): void {
  const { state, at } = frame;
  if (state.phase !== 'parked') return;
  state.phase = 'live';
  state.since = at;
  const { seconds } = state.policy;
  if (state.overtime) armBudget(frame, limits.lastGenerationMs);
  else if (seconds > 0) armBudget(frame, Math.max(0, seconds * 1000 - state.elapsedMs));
}

// --- the end of the run ----------------------------------------------------------------------------------

function endRun(frame: StepFrame, status: 'completed' | 'failed' | 'cancelled', error: RunError | null): void {
  disarmBudget(frame);
  frame.state.phase = 'ended';
  frame.out.push({ type: 'end_run', status, error });
}

function cancelRun(frame: StepFrame, reason: string): void {
  const { state } = frame;
  if (state.phase === 'ended') {
    for (const node of state.nodes) cancel(frame, node, reason);
  } else if (state.phase === 'live' || state.phase === 'parked') abandon(frame, reason, true);
}

/** What waits for people and clients is cancelled: the whole run, if it waits for them only (C3). */
function cancelWaiting(frame: StepFrame, reason: string): void {
  const { state } = frame;
  if (state.phase === 'parked') return cancelRun(frame, reason);
  for (const node of state.nodes) {
    if (isAsking(node.stage) || isWithClient(node)) cancel(frame, node, reason);
  }
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
