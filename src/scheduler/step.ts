/**
 * The scheduler: decides what happens in a run, and does nothing.
 *
 * `step(state, input)` takes one thing that happened and returns what is to be done about it. It has
 * no clock, no randomness and no I/O (S1): time and chance are fields of the inputs, so the same
 * inputs give the same commands, always.
 *
 * Owns the state of every action and of the loop: graph, ready set, attempts, budgets, finality.
 * Does not own values: results, variables and feeds are the engine's.
 *
 * `step` updates the state that it is given IN PLACE and returns it. A caller uses the returned
 * state only, and `snapshot` where it needs a copy that stays.
 *
 * Invariants:
 *  1. An action is queued at most once and settled exactly once (S10); `queue` comes before
 *     everything else that is said of it, except that a rejected action is only settled.
 *  2. An action starts after everything that it waits for has settled (S3, S4), never twice at the
 *     same time, and never again after it has settled.
 *  3. At most `maxParallelActions` actions that need a slot run at once, at most `concurrency` of
 *     one target and `maxParallelByType` of one type, fewer after an overload; no slot is idle while
 *     an action that may take it is ready (S5).
 *  4. Only the running attempt can change its action: what an older attempt or timer reports is
 *     ignored without a command (S7).
 *  5. Every attempt that starts has a timer, and ends by its outcome, its timer or an abort (S8).
 *  6. An iteration completes when its stream has ended and its awaited actions have settled (S11);
 *     exactly one `complete_iteration` answers each `start_iteration`, except that a run which is
 *     cancelled or overtime completes it early.
 *  7. `end_run` comes once with a terminal status; before it, any number of times with `waiting`;
 *     `drained` comes last, once.
 *  8. Work per input is proportional to what it changes: no search over all actions, except at the
 *     end of a generation (over that generation), on a cancel and at the first overload of a target.
 */
import { factsOf } from '../domain/action-types.ts';
import type { ActionDeclaration, ActionError, ActionRejection, ActionPolicy, RejectionCode } from '../domain/action.ts';
import { ERROR_TABLE, EngineError } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';
import type { ChildBudget, FinishReason } from '../domain/ports.ts';
import type { Spent } from '../domain/spent.ts';
import { NOTHING_SPENT, addSpent } from '../domain/spent.ts';
import { LONGEST_TIMER_MS, attemptsAllowed, isOverload, retryDelayMs, timeoutOf } from './attempts.ts';
import { isFinal, saidSomething } from './finality.ts';
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
import { newNode, sameAction, standIn, policyOfRefused } from './node.ts';
import { dequeue, enqueue, limit, release, slowDown, speedUp, takeNext } from './ready.ts';
import { isStuck } from './queries.ts';
import { newGeneration } from './state.ts';
import type { ActionNode, BudgetName, Generation, RunState, Stage } from './state.ts';
import type { SchedulerCommand, SchedulerInput, Settlement } from './types.ts';

export { initialState } from './state.ts';
export type { RunState } from './state.ts';
export { restore, snapshot } from './snapshot.ts';
export {
  action,
  bindings,
  counts,
  dependenciesOf,
  generationTokens,
  isFireAndForget,
  isStuck,
  lookup,
  statusOf,
} from './queries.ts';

/** One input being decided: what is said so far, and what has settled but not yet told its dependents. */
interface Turn {
  readonly state: RunState;
  readonly at: number;
  readonly out: SchedulerCommand[];
  readonly settled: ActionNode[];
}

type Input<Type extends SchedulerInput['type']> = Extract<SchedulerInput, { type: Type }>;
type RunError = { readonly code: string; readonly message: string };

/**
 * Decides one input.
 *
 * @param state what the previous step returned; updated in place
 * @returns the state to use from here on, and the commands in the order in which they are to be carried out
 * @throws EngineError `internal` for an input that cannot happen, such as a declaration outside a generation
 * @see docs/scheduling.md
 */
export function step(state: RunState, input: SchedulerInput): { state: RunState; commands: SchedulerCommand[] } {
  const turn: Turn = { state, at: input.at, out: [], settled: [] };
  take(turn, input);
  advance(turn);
  return { state, commands: turn.out };
}

const SPEECH: ReadonlySet<SchedulerInput['type']> = new Set([
  'action_declared',
  'action_refused',
  'response_closed',
  'generation_ended',
]);

function take(turn: Turn, input: SchedulerInput): void {
  // Who was thought to be silent has something to say after all.
  if (turn.state.generation?.streaming === true && SPEECH.has(input.type)) resume(turn);
  switch (input.type) {
    case 'run_started':
      return startRun(turn, input);
    case 'action_declared':
      return declare(turn, input.action, input.policy);
    case 'action_refused':
      return refuse(turn, input.rejection);
    case 'response_closed':
      return closeResponse(turn, input);
    case 'generation_ended':
      return endGeneration(turn, input);
    case 'generation_idle':
      return generationIdle(turn);
    case 'condition_evaluated':
      return conditionEvaluated(turn, input);
    case 'recalled':
      return recalled(turn, input);
    case 'attempt_succeeded':
      return attemptSucceeded(turn, input);
    case 'attempt_failed':
      return attemptFailed(turn, input);
    case 'timer_fired':
      return timerFired(turn, input);
    case 'approval_asked':
      return approvalAsked(turn, input);
    case 'approval_resolved':
      return approvalResolved(turn, input);
    case 'usage_recorded':
      turn.state.tokens += input.tokens;
      turn.state.cost += input.cost ?? 0;
      return;
    case 'cancel_requested':
      return cancelRun(turn, input.reason);
  }
}

/** Lets everything follow that now can: cascades, starts, the end of the iteration or of the run. */
function advance(turn: Turn): void {
  const { state } = turn;
  settleDown(turn);
  const wasLive = state.phase === 'live';
  review(turn);
  if (state.phase !== 'ended') return;
  // fire_and_forget actions now have the slots to themselves (S5).
  if (wasLive) settleDown(turn);
  if (state.open + state.openBackground > 0) return;
  state.phase = 'drained';
  turn.out.push({ type: 'drained' });
}

function settleDown(turn: Turn): void {
  do {
    propagate(turn);
    dispatch(turn);
  } while (turn.settled.length > 0);
}

// --- declaring ---------------------------------------------------------------------------------

function declare(turn: Turn, action: ActionDeclaration, policy: ActionPolicy): void {
  const { state } = turn;
  const generation = openGeneration(state);
  if (generation === null) return;
  const namesake = state.ids.get(action.id);
  if (namesake !== undefined && namesake.iteration === generation.iteration && namesake.admitted) {
    return declareAgain(turn, generation, namesake, action, policy);
  }
  const node = addNode(state, generation, action, policy, false);
  const refusal = refusalOf(turn, generation, node);
  if (refusal !== null) return rejectAtOnce(turn, generation, node, refusal.code, refusal.message);

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
        return rejectAtOnce(turn, generation, node, 'dependency_cycle', dependencyCycle(node, []));
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
    const circle = pathBetween(state, dependencies, waiters);
    if (circle !== null) return rejectAtOnce(turn, generation, node, 'dependency_cycle', dependencyCycle(node, circle));
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
    awaited(turn, dependency);
    link(state, node, dependency);
  }
  placeBehindBarriers(generation, node);
  if (unknown === null) queue(turn, node);
  if (waiters !== undefined) bindWaiters(turn, generation, node);
  if (generation.failedFast) settle(turn, node, { status: 'cancelled', reason: 'fail_fast' });
  else if (generation.stopped) settle(turn, node, { status: 'cancelled', reason: 'budget_exceeded' });
  else consider(turn, node);
}

/** An id repeated in one generation (P6): the same action to the letter is ignored, another one refused. */
function declareAgain(
  turn: Turn,
  generation: Generation,
  first: ActionNode,
  action: ActionDeclaration,
  policy: ActionPolicy,
): void {
  if (sameAction(first.declaration, action)) {
    const message = `Action "${action.id}" was declared twice, word for word: the second is ignored`;
    turn.out.push({ type: 'warn', code: 'duplicate_action', message, key: first.key });
    return;
  }
  const node = addNode(turn.state, generation, action, policy, false);
  const message = `The id "${action.id}" already belongs to another action of this generation: give each its own id`;
  settle(turn, node, { status: 'rejected', code: 'duplicate_id', message });
}

function refuse(turn: Turn, rejection: ActionRejection): void {
  const { state } = turn;
  const generation = openGeneration(state);
  if (generation === null) return;
  const node = addNode(state, generation, standIn(rejection), policyOfRefused, true);
  const namesake = state.ids.get(node.id);
  if (namesake !== undefined && namesake.iteration === generation.iteration) {
    settle(turn, node, { status: 'rejected', code: rejection.code, message: rejection.message });
  } else rejectAtOnce(turn, generation, node, rejection.code, rejection.message);
}

/** Rejects an action that was never admitted; what waits for its id is told. */
function rejectAtOnce(
  turn: Turn,
  generation: Generation,
  node: ActionNode,
  code: RejectionCode,
  message: string,
): void {
  register(turn.state, node);
  settle(turn, node, { status: 'rejected', code, message });
  if (generation.pending.has(node.id)) bindWaiters(turn, generation, node);
}

function refusalOf(
  turn: Turn,
  generation: Generation,
  node: ActionNode,
): { readonly code: RejectionCode; readonly message: string } | null {
  const { state } = turn;
  if (generation.last) {
    return {
      code: 'not_allowed',
      message: `Action "${node.id}" was not run: this is the last generation of the run, it may only answer`,
    };
  }
  const { maxActions } = state.policy;
  const taken = state.admittedActions + state.reserved.actions;
  if (taken >= maxActions) {
    exceed(turn, 'actions', maxActions, taken + 1);
    return {
      code: 'budget_exceeded',
      message: `Action "${node.id}" was not run: a run may hold ${maxActions} actions`,
    };
  }
  return node.policy.refusal;
}

/** The open generation; null when the run has ended and what still arrives is ignored. */
function openGeneration({ phase, generation }: RunState): Generation | null {
  if (phase === 'ended' || phase === 'drained') return null;
  if (generation?.streaming === true) return generation;
  throw new EngineError('internal', 'The scheduler was told of protocol text outside a generation');
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

function queue(turn: Turn, node: ActionNode): void {
  if (node.queued) return;
  node.queued = true;
  const { generation } = turn.state;
  if (generation?.iteration === node.iteration) generation.accepted += 1;
  turn.out.push({ type: 'queue', key: node.key, dependsOn: node.dependencies.map(({ key }) => key) });
}

/** A fire_and_forget action that something waits for is async (S4). */
function awaited(turn: Turn, node: ActionNode): void {
  if (node.mode !== 'fire_and_forget' || !node.admitted) return;
  const { state } = turn;
  const { heap, stage } = node;
  if (heap !== null) dequeue(state, node);
  node.mode = 'async';
  if (stage !== 'settled') {
    state.openBackground -= 1;
    state.open += 1;
    if (isActive(stage)) state.active += 1;
    if (stage === 'approval') state.asking += 1;
  }
  if (heap !== null) enqueue(state, node);
  const message = `Action "${node.id}" is fire_and_forget, but something waits for it: it runs as async`;
  turn.out.push({ type: 'warn', code: 'fire_and_forget_awaited', message, key: node.key });
}

/** Binds everything that waits for this id, declared at last (S3). */
function bindWaiters(turn: Turn, generation: Generation, node: ActionNode): void {
  const waiters = (generation.pending.get(node.id) ?? []).filter(({ stage }) => stage === 'waiting');
  generation.pending.delete(node.id);
  if (waiters.length === 0) return;
  for (const waiter of waiters) bindLate(turn, waiter, node.id, node);
  if (node.stage !== 'settled') {
    for (const freed of exemptFromBarriers(turn.state, generation, waiters, node)) consider(turn, freed);
  }
  for (const waiter of waiters) {
    if (waiter.unresolved.length > 0) continue;
    queue(turn, waiter);
    consider(turn, waiter);
  }
}

function bindLate(turn: Turn, waiter: ActionNode, name: string, dependency: ActionNode): void {
  waiter.unresolved = waiter.unresolved.filter((other) => other !== name);
  // What `depends_on` names is known to the references too, though it was declared later (P12).
  const { references } = waiter.declaration;
  const { outputKey } = dependency.declaration;
  for (const reference of references) {
    if (reference === outputKey || reference === name || reference === dependency.id) {
      const others = waiter.bound.filter(([other]) => other !== reference);
      waiter.bound = [...others, [reference, dependency]];
    }
  }
  if (waiter.dependencies.includes(dependency)) return;
  awaited(turn, dependency);
  waiter.dependencies = [...waiter.dependencies, dependency];
  link(turn.state, waiter, dependency);
}

function closeResponse(turn: Turn, { final, refers }: Input<'response_closed'>): void {
  const { state } = turn;
  const generation = openGeneration(state);
  if (generation === null) return;
  const producers: ActionNode[] = [];
  for (const key of refers) {
    const node = state.byKey.get(key);
    if (node === undefined) continue;
    awaited(turn, node);
    producers.push(node);
  }
  generation.responses.push({ final, refers: producers });
}

// --- becoming ready --------------------------------------------------------------------------------

/** Moves a waiting action on if nothing holds it back any more (S2, S3, S4). */
function consider(turn: Turn, node: ActionNode): void {
  if (node.stage !== 'waiting') return;
  const { waitForAll } = node.declaration;
  if (node.doomedBy !== null) {
    const hopeless = waitForAll || (node.unmet === 0 && node.successes + node.nulls === 0);
    if (hopeless && (waitForAll || node.unresolved.length === 0)) {
      return settle(turn, node, { status: 'skipped', reason: 'dependency', because: node.doomedBy.id });
    }
  }
  if (node.unresolved.length > 0 || node.barred !== 'open') return;
  if (node.unmet > 0 && (waitForAll || node.successes === 0)) return;
  if (node.declaration.when === null) return prepare(turn, node);
  setStage(turn.state, node, 'evaluating');
  turn.out.push({ type: 'evaluate', key: node.key });
}

function conditionEvaluated(turn: Turn, { key, result }: Input<'condition_evaluated'>): void {
  const node = turn.state.byKey.get(key);
  if (node?.stage !== 'evaluating') return;
  if (!result.ok) {
    const error = { code: 'condition_error', message: result.message, retryable: false };
    settle(turn, node, { status: 'failed', error });
  } else if (result.value) prepare(turn, node);
  else settle(turn, node, { status: 'skipped', reason: 'condition', because: null });
}

/** Everything that it waited for is there: held until its generation has ended well (S14), or asked about (J8), or ready. */
function prepare(turn: Turn, node: ActionNode): void {
  const { state } = turn;
  const { generation } = state;
  if (
    node.policy.dispatch === 'after_generation' &&
    generation?.streaming === true &&
    generation.iteration === node.iteration
  ) {
    return setStage(state, node, 'held');
  }
  if (!node.policy.needsApproval) return lookup(turn, node);
  setStage(state, node, 'asking');
  turn.out.push({ type: 'ask_approval', key: node.key });
  turn.out.push({ type: 'set_timer', timer: `approval:${node.key}`, delayMs: limits.approvalExpiryMs });
}

function approvalAsked(turn: Turn, { key, error }: Input<'approval_asked'>): void {
  const node = turn.state.byKey.get(key);
  if (node?.stage !== 'asking') return;
  if (error === null) setStage(turn.state, node, 'approval');
  else settle(turn, node, { status: 'failed', error });
}

function approvalResolved(turn: Turn, { key, approved, note }: Input<'approval_resolved'>): void {
  const node = turn.state.byKey.get(key);
  if (node?.stage !== 'approval') return;
  resume(turn);
  if (approved) {
    turn.out.push({ type: 'clear_timer', timer: `approval:${key}` });
    lookup(turn, node);
  } else deny(turn, node, note === null ? `Action "${node.id}" was denied` : `Action "${node.id}" was denied: ${note}`);
}

function deny(turn: Turn, node: ActionNode, message: string): void {
  settle(turn, node, { status: 'failed', error: { code: 'approval_denied', message, retryable: false } });
}

/**
 * Nothing holds it back any more: where an earlier outcome may stand for it, that is asked first.
 * It needs no slot, so a hit completes at once, however busy the run is (P6).
 */
function lookup(turn: Turn, node: ActionNode): void {
  if (node.policy.reuse !== true) return makeReady(turn.state, node);
  setStage(turn.state, node, 'recalling');
  turn.out.push({ type: 'lookup', key: node.key });
}

function recalled(turn: Turn, { key, found }: Input<'recalled'>): void {
  const node = turn.state.byKey.get(key);
  if (node?.stage !== 'recalling') return;
  if (found === 'nothing') makeReady(turn.state, node);
  else if (found === 'outcome') settle(turn, node, { status: 'completed' });
  else settle(turn, node, { status: 'failed', error: found.error });
}

function makeReady(state: RunState, node: ActionNode): void {
  setStage(state, node, 'ready');
  enqueue(state, node);
}

// --- attempts --------------------------------------------------------------------------------------

/** Starts what may start, most urgent first (S2, S5). */
function dispatch(turn: Turn): void {
  const { state } = turn;
  for (let node = takeNext(state); node !== null; node = takeNext(state)) {
    const lack = lackOf(turn, node);
    setStage(state, node, 'running');
    if (lack === null) start(turn, node, reserve(turn, node));
    else settle(turn, node, { status: 'failed', error: { ...lack, retryable: false } });
  }
}

function start(turn: Turn, node: ActionNode, budget: ChildBudget | null): void {
  node.attempt += 1;
  if (factsOf(node.declaration.type).spends === 'model_call') turn.state.modelCalls += 1;
  const { key, attempt } = node;
  const timeoutMs = timeoutOf(node.declaration, node.policy);
  turn.out.push({ type: 'start', key, attempt, timeoutMs, budget });
  turn.out.push({ type: 'set_timer', timer: attemptTimer('timeout', node), delayMs: timeoutMs });
}

/** Names the attempt, so that a timer which fires while it is being cleared cannot hit the next attempt. */
function attemptTimer(kind: 'timeout' | 'retry', { key, attempt }: ActionNode): string {
  return `${kind}:${key}#${attempt}`;
}

function runningNode(state: RunState, key: string, attempt: number): ActionNode | null {
  const node = state.byKey.get(key);
  return node?.stage === 'running' && node.attempt === attempt ? node : null;
}

function attemptSucceeded(turn: Turn, { key, attempt, spent }: Input<'attempt_succeeded'>): void {
  const node = runningNode(turn.state, key, attempt);
  if (node === null) return;
  giveBack(turn.state, node, spent);
  speedUp(turn.state, node);
  settle(turn, node, { status: 'completed' });
}

function attemptFailed(turn: Turn, { key, attempt, error, random, spent }: Input<'attempt_failed'>): void {
  const node = runningNode(turn.state, key, attempt);
  if (node === null) return;
  giveBack(turn.state, node, error.beforeDispatch === true ? NOTHING_SPENT : spent);
  failAttempt(turn, node, error, random);
}

function failAttempt(turn: Turn, node: ActionNode, error: ActionError, random: number): void {
  const { state, out } = turn;
  const { declaration, policy, key, attempt } = node;
  if (isOverload(error)) {
    const slowed = slowDown(state, node);
    if (slowed !== null) {
      const message = `"${slowed.name}" has too much to do: at most ${slowed.max} at the same time from here on, more again as they succeed`;
      out.push({ type: 'warn', code: 'overloaded', message, key });
    }
  }
  if (attempt >= attemptsAllowed(declaration, policy, error)) return settle(turn, node, { status: 'failed', error });
  out.push({ type: 'clear_timer', timer: attemptTimer('timeout', node) });
  giveBack(state, node);
  release(state, node);
  setStage(state, node, 'retrying');
  const delayMs = retryDelayMs(declaration.retry ?? policy.retry, attempt, error, random);
  out.push({ type: 'retry', key, attempt, delayMs, error });
  out.push({ type: 'set_timer', timer: attemptTimer('retry', node), delayMs });
}

function timerFired(turn: Turn, { timer, random }: Input<'timer_fired'>): void {
  if (timer === 'budget') return timeIsUp(turn);
  const [kind, rest = ''] = timer.split(':', 2);
  const [key = '', attempt] = rest.split('#', 2);
  const node = turn.state.byKey.get(key);
  if (node === undefined) return;
  if (kind === 'approval') {
    if (node.stage !== 'approval') return;
    resume(turn);
    deny(turn, node, `Nobody approved action "${node.id}" in time`);
  } else if (node.attempt !== Number(attempt)) {
    return;
  } else if (kind === 'timeout' && node.stage === 'running') {
    const seconds = timeoutOf(node.declaration, node.policy) / 1000;
    turn.out.push({ type: 'abort', key, attempt: node.attempt, reason: 'timeout' });
    const message = `Action "${node.id}" did not finish within ${seconds} s`;
    failAttempt(turn, node, { code: 'timeout', message, retryable: true }, random ?? 1);
  } else if (kind === 'retry' && node.stage === 'retrying') {
    makeReady(turn.state, node);
  }
}

// --- settling --------------------------------------------------------------------------------------

/** Ends an action, once (S10). What depends on it hears of it in `propagate`. */
function settle(turn: Turn, node: ActionNode, settlement: Settlement): void {
  if (node.stage === 'settled') return;
  const { state, out } = turn;
  const { key } = node;
  giveBack(state, node);
  if (settlement.status !== 'rejected') queue(turn, node);
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
  turn.settled.push(node);
}

/** Whether dependents go on: with a result, or with null in its place (S6). */
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

/** Tells dependents and barriers of everything that has settled, in cascade. */
function propagate(turn: Turn): void {
  const { state, settled } = turn;
  for (const node of settled) {
    for (const dependent of node.dependents) {
      if (dependent.stage !== 'waiting') continue;
      dependent.unmet -= 1;
      countSettled(dependent, node);
      consider(turn, dependent);
    }
    const { generation } = state;
    if (generation?.iteration === node.iteration && node.declaration.mode === 'sync') {
      for (const freed of liftBarrier(generation, node)) consider(turn, freed);
    }
    if (node.settlement?.status === 'failed') failFast(turn, node);
  }
  settled.length = 0;
}

function failFast(turn: Turn, node: ActionNode): void {
  const { state } = turn;
  if (!state.policy.failFast || node.satisfied || node.mode === 'fire_and_forget') return;
  if (state.generation !== null) state.generation.failedFast = true;
  for (const other of state.nodes) cancel(turn, other, 'fail_fast');
}

/** Ends an action that has not settled; a running attempt is aborted and not waited for. */
function cancel(turn: Turn, node: ActionNode, reason: string): void {
  if (node.stage === 'settled') return;
  const { key, attempt, stage } = node;
  if (stage === 'running') turn.out.push({ type: 'abort', key, attempt, reason });
  settle(turn, node, { status: 'cancelled', reason });
}

function setStage(state: RunState, node: ActionNode, stage: Stage): void {
  if (node.admitted && node.mode !== 'fire_and_forget') {
    state.active += Number(isActive(stage)) - Number(isActive(node.stage));
    state.asking += Number(stage === 'approval') - Number(node.stage === 'approval');
  }
  node.stage = stage;
}

/** At work, or about to be without anybody's help. */
function isActive(stage: Stage): boolean {
  return stage !== 'waiting' && stage !== 'approval' && stage !== 'settled';
}

// --- the end of a generation -------------------------------------------------------------------------

function endGeneration(turn: Turn, { finish, answered, error }: Input<'generation_ended'>): void {
  const { state } = turn;
  const generation = openGeneration(state);
  if (generation === null) return;
  generation.streaming = false;
  generation.finish = finish;
  generation.error = error;
  generation.answered = answered;
  if (brokeOff(finish)) {
    // Only what has started follows its course (P15).
    for (const node of generation.nodes) if (!hasStarted(node)) cancel(turn, node, `generation_${finish}`);
    reportPlan(turn, generation);
  } else {
    bindTheRest(turn, generation);
    reportPlan(turn, generation);
    for (const node of generation.nodes) {
      if (node.policy.dispatch !== 'after_generation' || hasStarted(node)) continue;
      if (finish === 'length') cancel(turn, node, 'generation_length');
      else if (node.stage === 'held') prepare(turn, node);
    }
  }
}

function reportPlan({ out }: Turn, { accepted, iteration }: Generation): void {
  if (accepted > 0) out.push({ type: 'report_plan', iteration });
}

function hasStarted(node: ActionNode): boolean {
  return node.attempt > 0;
}

function brokeOff(finish: FinishReason): boolean {
  return finish === 'content_filter' || finish === 'error' || finish === 'abort';
}

/** Nothing more will be declared: every open `depends_on` name gets its meaning or is unknown (S3). */
function bindTheRest(turn: Turn, generation: Generation): void {
  const { state } = turn;
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
      settle(turn, node, { status: 'rejected', code: 'unknown_dependency', message });
      continue;
    }
    const circle = pathBetween(state, [...found.values()], [node]);
    if (circle !== null) {
      const message = dependencyCycle(node, circle.slice(0, -1));
      settle(turn, node, { status: 'rejected', code: 'dependency_cycle', message });
      continue;
    }
    for (const [name, dependency] of found) {
      bindLate(turn, node, name, dependency);
      if (dependency.stage === 'settled') continue;
      for (const freed of exemptFromBarriers(state, generation, [node], dependency)) consider(turn, freed);
    }
    queue(turn, node);
    consider(turn, node);
  }
}

// --- the loop ----------------------------------------------------------------------------------------

function startRun(turn: Turn, { policy, at }: Input<'run_started'>): void {
  const { state } = turn;
  if (state.phase !== 'new') throw new EngineError('internal', 'The run was started twice');
  state.phase = 'live';
  state.policy = { ...policy, maxParallelActions: Math.max(1, policy.maxParallelActions) };
  state.since = at;
  if (policy.source === 'model' && policy.modelCalls < 1) {
    exceed(turn, 'model_calls', policy.modelCalls, 1);
    return endRun(turn, 'failed', budgetError(state, 'model_calls'));
  }
  if (policy.seconds > 0) armBudget(turn, policy.seconds * 1000);
  startIteration(turn, 1, false);
}

function startIteration({ state, out }: Turn, iteration: number, last: boolean): void {
  state.generation = newGeneration(iteration, last);
  if (state.policy.source === 'model') state.modelCalls += 1;
  out.push({ type: 'start_iteration', iteration, last });
}

/** Completes the iteration when nothing of it is left, or parks the run when only humans can move it on. */
function review(turn: Turn): void {
  const { state } = turn;
  const { generation, phase } = state;
  if (phase !== 'live' || generation === null || generation.streaming) return;
  if (state.open === 0) completeIteration(turn, generation);
  else if (state.active === 0 && state.asking > 0) park(turn);
}

function completeIteration(turn: Turn, generation: Generation): void {
  const { state } = turn;
  const verdict = judge(state, generation);
  turn.out.push({ type: 'complete_iteration', iteration: generation.iteration, final: verdict.type === 'answered' });
  switch (verdict.type) {
    case 'answered':
      return endRun(turn, 'completed', null);
    case 'failed':
      return endRun(turn, 'failed', verdict.error);
    case 'go_on':
      return nextIteration(turn, generation.iteration + 1);
  }
}

type Verdict =
  | { readonly type: 'answered' }
  | { readonly type: 'failed'; readonly error: RunError }
  | { readonly type: 'go_on' };

/** What a settled generation means for the run (P10, P15, S11). */
function judge(state: RunState, generation: Generation): Verdict {
  const { finish } = generation;
  const broke = finish !== null && brokeOff(finish) && !generation.stopped;
  if (state.policy.source === 'text') {
    return broke ? { type: 'failed', error: breakError(generation) } : { type: 'answered' };
  }
  if (broke && breakError(generation).code === INTERRUPTED && !isFinal(state, generation)) {
    state.interrupted += 1;
    return state.interrupted > limits.cutGenerations ? { type: 'failed', error: exhausted(state) } : { type: 'go_on' };
  }
  if (generation.last) {
    if (saidSomething(generation)) return { type: 'answered' };
    return { type: 'failed', error: broke ? breakError(generation) : lastError(state) };
  }
  if (isFinal(state, generation)) return { type: 'answered' };
  if (broke) {
    state.broken += 1;
    const error = breakError(generation);
    return state.broken >= limits.brokenGenerations || isHopeless(error.code)
      ? { type: 'failed', error }
      : { type: 'go_on' };
  }
  state.broken = 0;
  state.idle = generation.responses.length > 0 || generation.accepted > 0 || generation.stopped ? 0 : state.idle + 1;
  if (state.idle >= limits.idleIterations) {
    const message = `The model neither answered nor declared an action that could be accepted, ${state.idle} times in a row`;
    return { type: 'failed', error: { code: 'no_progress', message } };
  }
  return { type: 'go_on' };
}

function breakError({ error, finish }: Generation): RunError {
  if (error !== null) return error;
  return { code: `generation_${finish ?? 'error'}`, message: `The generation ended early: ${finish ?? 'error'}` };
}

/** The code of a generation that a crash of the host cut: nobody's fault, counted apart (J2). */
const INTERRUPTED = 'interrupted';

function exhausted({ interrupted }: RunState): RunError {
  const message = `The host was restarted during ${interrupted} generations of this run: it is given up`;
  return { code: 'recovery_exhausted', message };
}

/** An error that asking again cannot mend. */
function isHopeless(code: string): boolean {
  return Object.hasOwn(ERROR_TABLE, code) && ERROR_TABLE[code as keyof typeof ERROR_TABLE].retry === 'no';
}

function lastError(state: RunState): RunError {
  const [first] = state.exceeded;
  if (first !== undefined && first !== 'iterations') return budgetError(state, first);
  const { maxIterations } = state.policy;
  return {
    code: 'max_iterations',
    message: `No answer within ${maxIterations} iterations, nor in the last generation after them`,
  };
}

function nextIteration(turn: Turn, iteration: number): void {
  const { state } = turn;
  const { policy } = state;
  const { maxIterations } = policy;
  if (maxIterations > 0 && iteration > maxIterations) exceed(turn, 'iterations', maxIterations, maxIterations);
  const calls = callsLeft(state);
  const tokens = tokensLeft(state);
  // One call and some tokens are set aside for the last generation (S12).
  if (calls <= 0) exceed(turn, 'model_calls', policy.modelCalls, state.modelCalls);
  if (policy.tokens !== null && tokens <= 0) exceed(turn, 'tokens', policy.tokens, state.tokens);
  exceedCost(turn);
  if (state.exceeded.length === 0) return startIteration(turn, iteration, false);
  if (calls < 0) return endRun(turn, 'failed', budgetError(state, 'model_calls'));
  if (tokens < 0) return endRun(turn, 'failed', budgetError(state, 'tokens'));
  startIteration(turn, iteration, true);
}

// --- budgets (S12) -----------------------------------------------------------------------------------

/** Model calls beyond the one that is set aside for the last generation. */
function callsLeft({ policy, modelCalls, reserved }: RunState): number {
  return policy.modelCalls - modelCalls - reserved.modelCalls - (policy.source === 'model' ? 1 : 0);
}

/** Sessions that may still be started. */
function childrenLeft({ policy, children, reserved }: RunState): number {
  return (policy.maxChildren ?? Infinity) - children - (reserved.children ?? 0);
}

/** Tokens beyond those set aside for the last generation. */
function tokensLeft({ policy, tokens, reserved }: RunState): number {
  if (policy.tokens === null) return Infinity;
  return policy.tokens - tokens - reserved.tokens - (policy.source === 'model' ? limits.lastGenerationTokens : 0);
}

/**
 * Sets aside what a child may spend (S12): an equal part of what is left, for itself, for every child
 * that waits, and for what comes after them. Null for actions that start no child.
 */
function reserve({ state, at }: Turn, node: ActionNode): ChildBudget | null {
  if (!startsChild(node)) return null;
  const { policy, generation, reserved } = state;
  const waiting =
    generation?.nodes.filter((other) => other !== node && startsChild(other) && isPending(other)).length ?? 0;
  const part = (left: number): number => Math.max(0, left) / (waiting + 2);
  const usedMs = state.elapsedMs + (at - state.since);
  const actionsLeft = Math.max(0, policy.maxActions - state.admittedActions - reserved.actions);
  const budget: ChildBudget = {
    seconds: policy.seconds > 0 ? Math.max(1, policy.seconds - usedMs / 1_000) : limits.runSeconds,
    modelCalls: Math.max(1, Math.floor(part(callsLeft(state)))),
    tokens: policy.tokens === null ? null : Math.max(1, Math.floor(part(tokensLeft(state)))),
    cost: policy.cost == null ? null : part(policy.cost - state.cost - reserved.cost),
    // A child can answer without an action, so what is not there is not lent.
    actions: Math.min(actionsLeft, Math.max(1, Math.floor(part(actionsLeft)))),
    children: childrenLent(state, waiting),
  };
  const { modelCalls, actions, tokens, cost, children } = budget;
  node.reserved = { modelCalls, actions, tokens: tokens ?? 0, cost: cost ?? 0, children: children + 1 };
  state.reserved = addSpent(reserved, node.reserved);
  state.directChildren += 1;
  return budget;
}

/**
 * Sessions that a child may start itself: two thirds of what is left beside it, less what is kept for its
 * siblings. Half of all is theirs, or one for each that waits: what a model goes on to declare is not known yet.
 */
function childrenLent(state: RunState, waiting: number): number {
  const { maxChildren } = state.policy;
  if (maxChildren === undefined) return limits.childrenPerRun;
  const kept = Math.max(waiting, Math.ceil(maxChildren / 2) - 1 - state.directChildren);
  return Math.ceil((Math.max(0, childrenLeft(state) - 1 - kept) * 2) / 3);
}

/**
 * A child's end, or its attempt's: what was set aside and not spent is free again (S12). Sessions whose
 * number is not known count as started: a child that timed out may have started as many as it was lent.
 */
function giveBack(state: RunState, node: ActionNode, spent?: Spent): void {
  if (node.reserved === null) return;
  state.reserved = addSpent(state.reserved, node.reserved, -1);
  state.children += spent?.children ?? node.reserved.children ?? 0;
  node.reserved = null;
  if (spent === undefined) return;
  state.modelCalls += spent.modelCalls;
  state.tokens += spent.tokens;
  state.cost += spent.cost;
  state.admittedActions += spent.actions;
}

function startsChild({ declaration: { type } }: ActionNode): boolean {
  return factsOf(type).spends === 'session';
}

function isPending({ admitted, stage }: ActionNode): boolean {
  return admitted && stage !== 'running' && stage !== 'settled';
}

/** Why an action may not be dispatched, or null. Only what calls models spends calls and tokens. */
function lackOf(turn: Turn, node: ActionNode): Pick<ActionError, 'code' | 'message'> | null {
  const { state } = turn;
  const { spends } = factsOf(node.declaration.type);
  if (spends === 'nothing') return null;
  const { policy } = state;
  if (spends === 'session' && childrenLeft(state) <= 0) {
    const allowed = `this run may start ${policy.maxChildren ?? 0} sessions, with those that they start`;
    return { code: 'too_many_children', message: `Action "${node.id}" was not started: ${allowed}` };
  }
  const message = budgetLack(turn, node);
  return message === null ? null : { code: 'budget_exceeded', message };
}

function budgetLack(turn: Turn, node: ActionNode): string | null {
  const { state } = turn;
  const { policy } = state;
  if (callsLeft(state) <= 0) {
    exceed(turn, 'model_calls', policy.modelCalls, state.modelCalls);
    return `No model call is left for action "${node.id}": the run may make ${policy.modelCalls}, and keeps one for its answer`;
  }
  if (policy.tokens !== null && tokensLeft(state) <= 0) {
    exceed(turn, 'tokens', policy.tokens, state.tokens);
    return `No tokens are left for action "${node.id}": the run may use ${policy.tokens}, and keeps some for its answer`;
  }
  if (exceedCost(turn))
    return `No money is left for action "${node.id}": the run may spend ${policy.cost ?? 0} US dollars`;
  return null;
}

/** What a call will cost is known only after it: so the budget is over when it is reached, and the last generation may pass it. */
function exceedCost(turn: Turn): boolean {
  const { policy, cost, reserved } = turn.state;
  if (policy.cost == null || cost + reserved.cost < policy.cost) return false;
  exceed(turn, 'cost', policy.cost, cost);
  return true;
}

/** Reports a budget as exceeded, once; the next generation is then the last one. */
function exceed({ state, out }: Turn, budget: BudgetName, limit: number, used: number): void {
  if (state.exceeded.includes(budget)) return;
  state.exceeded.push(budget);
  out.push({ type: 'budget_exceeded', budget, limit, used });
}

function budgetError({ policy }: RunState, budget: BudgetName): RunError {
  const allowed = {
    iterations: `${policy.maxIterations} iterations`,
    seconds: `${policy.seconds} s`,
    model_calls: `${policy.modelCalls} model calls`,
    tokens: `${policy.tokens ?? 0} tokens`,
    cost: `${policy.cost ?? 0} US dollars`,
    actions: `${policy.maxActions} actions`,
  }[budget];
  return { code: 'budget_exceeded', message: `The run's budget of ${allowed} is spent, and there is no answer` };
}

function armBudget({ state, out }: Turn, remainingMs: number): void {
  state.budgetTimer = true;
  out.push({ type: 'set_timer', timer: 'budget', delayMs: Math.min(remainingMs, LONGEST_TIMER_MS) });
}

function disarmBudget({ state, out }: Turn): void {
  if (!state.budgetTimer) return;
  state.budgetTimer = false;
  out.push({ type: 'clear_timer', timer: 'budget' });
}

/**
 * The seconds are over: awaited work is given up and the model gets one last generation, with a
 * deadline of its own. When that is over too, or there is no model, the run ends.
 */
function timeIsUp(turn: Turn): void {
  const { state, at, out } = turn;
  const { policy, generation } = state;
  if (state.phase !== 'live' || generation === null || !state.budgetTimer) return;
  state.budgetTimer = false;
  const usedMs = state.elapsedMs + (at - state.since);
  if (!state.overtime) {
    const remainingMs = policy.seconds * 1000 - usedMs;
    if (remainingMs > 0) return armBudget(turn, remainingMs);
    exceed(turn, 'seconds', policy.seconds, usedMs / 1000);
  }
  if (state.overtime || policy.source === 'text' || generation.last) return abandon(turn, 'budget_exceeded', false);
  state.overtime = true;
  if (generation.streaming) {
    generation.stopped = true;
    out.push({ type: 'stop_generation' });
  }
  for (const node of state.nodes) if (!isLeftRunning(node)) cancel(turn, node, 'budget_exceeded');
  armBudget(turn, limits.lastGenerationMs);
}

/** A fire_and_forget action that has been dispatched is the session's to finish (S4); no budget calls it back. */
function isLeftRunning(node: ActionNode): boolean {
  return node.mode === 'fire_and_forget' && hasStarted(node);
}

// --- waiting for approvals (J8) ------------------------------------------------------------------------

/** Only humans can move the run on: its stream may end, and the seconds stop to count. */
function park(turn: Turn): void {
  const { state, at } = turn;
  state.phase = 'parked';
  state.elapsedMs += at - state.since;
  disarmBudget(turn);
  turn.out.push({ type: 'end_run', status: 'waiting', error: null });
}

/** The text goes on only after an approval: that is waited for as at the end of a text. */
function generationIdle(turn: Turn): void {
  if (isStuck(turn.state)) park(turn);
}

function resume(turn: Turn): void {
  const { state, at } = turn;
  if (state.phase !== 'parked') return;
  state.phase = 'live';
  state.since = at;
  const { seconds } = state.policy;
  if (state.overtime) armBudget(turn, limits.lastGenerationMs);
  else if (seconds > 0) armBudget(turn, Math.max(0, seconds * 1000 - state.elapsedMs));
}

// --- the end of the run ----------------------------------------------------------------------------------

function endRun(turn: Turn, status: 'completed' | 'failed' | 'cancelled', error: RunError | null): void {
  disarmBudget(turn);
  turn.state.phase = 'ended';
  turn.out.push({ type: 'end_run', status, error });
}

function cancelRun(turn: Turn, reason: string): void {
  const { state } = turn;
  if (state.phase === 'ended') {
    for (const node of state.nodes) cancel(turn, node, reason);
  } else if (state.phase === 'live' || state.phase === 'parked') abandon(turn, reason, true);
}

/** Ends the run now: stops the stream, gives up what has not settled, and does not wait for any of it (J5). */
function abandon(turn: Turn, reason: string, cancelled: boolean): void {
  const { state, out } = turn;
  const { generation } = state;
  if (generation?.streaming === true) {
    generation.streaming = false;
    out.push({ type: 'stop_generation' });
  }
  for (const node of state.nodes) {
    if (cancelled || !isLeftRunning(node)) cancel(turn, node, reason);
  }
  propagate(turn);
  if (generation !== null) out.push({ type: 'complete_iteration', iteration: generation.iteration, final: false });
  if (cancelled) endRun(turn, 'cancelled', null);
  else endRun(turn, 'failed', budgetError(state, 'seconds'));
}
