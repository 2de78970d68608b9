/**
 * The budgets of a run (S12): what is left of each, what is reserved for children, and the timer of the time budget.
 *
 * Makes no decisions about actions or the loop: `step` asks for the remaining budget and acts on it.
 */
import { actionSpec } from '../domain/action-types.ts';
import type { ActionError } from '../domain/action.ts';
import type { RunError } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';
import type { ChildBudget } from '../domain/ports/children.ts';
import type { Spent } from '../domain/spent.ts';
import { addSpent } from '../domain/spent.ts';
import { LONGEST_TIMER_MS } from './attempts.ts';
import type { ActionNode, BudgetName, RunState } from './state.ts';
import type { StepFrame } from './step-frame.ts';

/** Remaining model calls, without the one reserved for the last generation. */
export function callsLeft({ policy, modelCalls, reserved }: RunState): number {
  return policy.modelCalls - modelCalls - reserved.modelCalls - (policy.source === 'model' ? 1 : 0);
}

/** Sessions that may still be started. */
function childrenLeft({ policy, children, reserved }: RunState): number {
  return (policy.maxChildren ?? Infinity) - children - (reserved.children ?? 0);
}

/** Remaining tokens, without those reserved for the last generation. */
export function tokensLeft({ policy, tokens, reserved }: RunState): number {
  if (policy.tokens === null) return Infinity;
  return policy.tokens - tokens - reserved.tokens - (policy.source === 'model' ? limits.lastGenerationTokens : 0);
}

/**
 * Reserves the budget of a child (S12): an equal share of the remaining budget, divided between this child, every
 * waiting child, and later work. Null for actions that start no child.
 */
export function reserve({ state, at }: StepFrame, node: ActionNode): ChildBudget | null {
  if (!startsChild(node)) return null;
  const { policy, generation, reserved } = state;
  const waiting = generation?.nodes.filter((other) => startsChild(other) && isPending(other)).length ?? 0;
  const part = (left: number): number => Math.max(0, left) / (waiting + 2);
  const usedMs = state.elapsedMs + (at - state.since);
  const actionsLeft = Math.max(0, policy.maxActions - state.admittedActions - reserved.actions);
  const budget: ChildBudget = {
    seconds: policy.seconds > 0 ? Math.max(1, policy.seconds - usedMs / 1_000) : limits.runSeconds,
    modelCalls: Math.max(1, Math.floor(part(callsLeft(state)))),
    tokens: policy.tokens === null ? null : Math.max(1, Math.floor(part(tokensLeft(state)))),
    cost: policy.cost == null ? null : part(policy.cost - state.cost - reserved.cost),
    // A child can answer without an action, so it may get no actions at all.
    actions: Math.min(actionsLeft, Math.max(1, Math.floor(part(actionsLeft)))),
    children: sessionsForChild(state, waiting),
  };
  const { modelCalls, actions, tokens, cost, children } = budget;
  node.reserved = { modelCalls, actions, tokens: tokens ?? 0, cost: cost ?? 0, children: children + 1 };
  state.reserved = addSpent(reserved, node.reserved);
  state.directChildren += 1;
  return budget;
}

/**
 * Sessions that a child may start itself: two thirds of the remaining sessions, without its own and those kept for its
 * siblings. Half of `maxChildren` is kept for siblings (or one per waiting child, if more): later ones are unknown.
 */
function sessionsForChild(state: RunState, waiting: number): number {
  const { maxChildren } = state.policy;
  if (maxChildren === undefined) return limits.childrenPerRun;
  const kept = Math.max(waiting, Math.ceil(maxChildren / 2) - 1 - state.directChildren);
  return Math.ceil((Math.max(0, childrenLeft(state) - 1 - kept) * 2) / 3);
}

/**
 * A child or its attempt has ended: releases the unspent part of its reservation (S12). If the number of its sessions
 * is unknown, all reserved ones count as started: a child that timed out may have started that many.
 */
export function releaseReservation(state: RunState, node: ActionNode, spent?: Spent): void {
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
  return actionSpec(type).spends === 'session';
}

function isPending({ admitted, stage }: ActionNode): boolean {
  return admitted && stage !== 'running' && stage !== 'settled';
}

/** The error if a budget does not allow the action to start, else null. Only model calls use calls and tokens. */
export function shortageOf(frame: StepFrame, node: ActionNode): Pick<ActionError, 'code' | 'message'> | null {
  const { state } = frame;
  const { spends } = actionSpec(node.declaration.type);
  if (spends === 'nothing') return null;
  const { policy } = state;
  if (spends === 'session' && childrenLeft(state) <= 0) {
    const allowed = `this run may start ${policy.maxChildren ?? 0} sessions, including nested ones`;
    return { code: 'too_many_children', message: `Action "${node.id}" was not started: ${allowed}` };
  }
  const message = budgetShortage(frame, node);
  return message === null ? null : { code: 'budget_exceeded', message };
}

function budgetShortage(frame: StepFrame, node: ActionNode): string | null {
  const { state } = frame;
  const { policy } = state;
  if (callsLeft(state) <= 0) {
    exceed(frame, 'model_calls', policy.modelCalls, state.modelCalls);
    return `No model call is left for action "${node.id}": the run may make ${policy.modelCalls}, and one is reserved for its answer`;
  }
  if (policy.tokens !== null && tokensLeft(state) <= 0) {
    exceed(frame, 'tokens', policy.tokens, state.tokens);
    return `No tokens are left for action "${node.id}": the run may use ${policy.tokens}, and some are reserved for its answer`;
  }
  if (exceedCost(frame))
    return `No money is left for action "${node.id}": the run may spend ${policy.cost ?? 0} US dollars`;
  return null;
}

/** A call's cost is known only afterwards: the budget ends when it is reached, and the last generation may exceed it. */
export function exceedCost(frame: StepFrame): boolean {
  const { policy, cost, reserved } = frame.state;
  if (policy.cost == null || cost + reserved.cost < policy.cost) return false;
  exceed(frame, 'cost', policy.cost, cost);
  return true;
}

/** Reports a budget as exceeded, once. The next generation is then the last one. */
export function exceed({ state, out }: StepFrame, budget: BudgetName, limit: number, used: number): void {
  if (state.exceeded.includes(budget)) return;
  state.exceeded.push(budget);
  out.push({ type: 'budget_exceeded', budget, limit, used });
}

export function budgetError({ policy }: RunState, budget: BudgetName): RunError {
  const allowed = {
    iterations: `${policy.maxIterations} iterations`,
    seconds: `${policy.seconds} s`,
    model_calls: `${policy.modelCalls} model calls`,
    tokens: `${policy.tokens ?? 0} tokens`,
    cost: `${policy.cost ?? 0} US dollars`,
    actions: `${policy.maxActions} actions`,
  }[budget];
  return { code: 'budget_exceeded', message: `The run used up its budget (${allowed}) without an answer` };
}

export function armBudget({ state, out }: StepFrame, remainingMs: number): void {
  state.budgetTimer = true;
  out.push({ type: 'set_timer', timer: 'budget', delayMs: Math.min(remainingMs, LONGEST_TIMER_MS) });
}

export function disarmBudget({ state, out }: StepFrame): void {
  if (!state.budgetTimer) return;
  state.budgetTimer = false;
  out.push({ type: 'clear_timer', timer: 'budget' });
}
