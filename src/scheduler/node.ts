/** Actions as the scheduler first knows them, before anything has happened to them. */
import { DEFAULT_ACTION_TYPE } from '../domain/action-types.ts';
import { plainDeclaration } from '../domain/action.ts';
import type { ActionDeclaration, ActionRejection, ActionPolicy } from '../domain/action.ts';
import type { ActionNode, RunState } from './state.ts';

/** Shared by all nodes until they have something to list, and never added to: most lists stay empty. */
const NOTHING: never[] = [];

export function newNode(
  state: RunState,
  iteration: number,
  declaration: ActionDeclaration,
  policy: ActionPolicy,
  refused: boolean,
): ActionNode {
  return {
    key: `${iteration}/${declaration.ordinal}`,
    index: state.nodes.length,
    iteration,
    id: declaration.id,
    declaration,
    policy,
    refused,
    mode: declaration.mode,
    stage: 'waiting',
    admitted: false,
    queued: false,
    settlement: null,
    satisfied: false,
    attempt: 0,
    unresolved: NOTHING,
    dependencies: NOTHING,
    dependents: NOTHING,
    unmet: 0,
    successes: 0,
    nulls: 0,
    doomedBy: null,
    bound: NOTHING,
    barred: 'open',
    exempt: NOTHING,
    holds: NOTHING,
    holdCount: 0,
    limits: NOTHING,
    cutsAtStart: 0,
    reserved: null,
    heap: null,
    heapAt: -1,
    priority: declaration.priority,
    pathMs: policy.estimateMs,
    mark: 0,
  };
}

/** Stands in for an action that the parser could not read: enough to be named and depended on. */
export function standIn(rejection: ActionRejection): ActionDeclaration {
  return plainDeclaration({
    ordinal: rejection.ordinal,
    id: rejection.id,
    type: rejection.type ?? DEFAULT_ACTION_TYPE,
    mode: rejection.mode ?? 'async',
    name: rejection.name ?? '',
    dependsOn: [],
  });
}

/** What is known of the target of an action that could not be read: nothing, so the least. */
export const policyOfRefused: ActionPolicy = {
  effects: 'unsafe',
  timeoutMs: 0,
  retry: { maxAttempts: 1, backoff: 'none', delayMs: 0, maxDelayMs: 0 },
  concurrency: null,
  dispatch: 'eager',
  needsApproval: false,
  estimateMs: 0,
  refusal: null,
};

/** Whether two declarations say the same thing to the letter, wherever they stand (P6). */
export function sameAction(a: ActionDeclaration, b: ActionDeclaration): boolean {
  return essence(a) === essence(b);
}

const PLACE: ReadonlySet<string> = new Set<keyof ActionDeclaration>(['ordinal', 'span', 'embeddedInThought']);

function essence(action: ActionDeclaration): string {
  return JSON.stringify(Object.entries(action).filter(([field]) => !PLACE.has(field)));
}
