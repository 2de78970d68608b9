/** Declared actions and responses: admits an action, or rejects it (P6, S3, S12). */
import type { ActionDeclaration, ActionPolicy, ActionRejection, RejectionCode } from '../domain/action.ts';
import { EngineError } from '../domain/errors.ts';
import { awaited, bindWaiters } from './bind.ts';
import { exceed } from './budgets.ts';
import {
  dependencyCycle,
  dependencyOf,
  link,
  pathBetween,
  placeBehindBarriers,
  producerOf,
  register,
  registerName,
} from './graph.ts';
import { newNode, placeholder, placeholderPolicy, sameAction } from './node.ts';
import { consider } from './prepare.ts';
import { limit } from './ready.ts';
import { queue, settle } from './settle.ts';
import type { ActionNode, Generation, RunState } from './state.ts';
import type { StepFrame } from './step-frame.ts';
import type { Input } from './types.ts';

export function declare(frame: StepFrame, action: ActionDeclaration, policy: ActionPolicy): void {
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
 * an approval, was not judged, and which nothing depends on. What it refers to was declared before the first one, so no cycle closes.
 */
function isReplaceable(state: RunState, first: ActionNode, action: ActionDeclaration, policy: ActionPolicy): boolean {
  const { declaration, stage } = first;
  const { parameters, references } = declaration;
  if (Object.keys(parameters).length > 0 || first.dependents.length > 0 || policy.refusal !== null) return false;
  if (first.questions > 0) return false;
  if (!sameAction(declaration, { ...action, parameters, references, repaired: declaration.repaired })) return false;
  const producers = action.references.map((name) => producerOf(state, name));
  if (producers.some((producer) => producer !== null && producer.index >= first.index)) return false;
  if (stage === 'waiting') return true;
  // What was judged is what runs (C9).
  const isPending = stage === 'held' || (stage === 'ready' && first.policy.judged === undefined);
  return isPending && producers.every((producer) => producer === null || producer.stage === 'settled');
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

export function refuse(frame: StepFrame, rejection: ActionRejection): void {
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

export function closeResponse(
  frame: StepFrame,
  { final, refers, hasReferences = false }: Input<'response_closed'>,
): void {
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

/** The open generation; null if the run has ended, so that late input is ignored. */
export function openGeneration({ phase, generation }: RunState): Generation | null {
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
  const { idempotencyKey } = node.declaration;
  if (idempotencyKey !== null) {
    const sharing = state.sharing.get(idempotencyKey);
    if (sharing === undefined) state.sharing.set(idempotencyKey, [node]);
    else sharing.push(node);
  }
  limit(state, node);
}
