/** Creates the scheduler's record of an action. */
import { DEFAULT_ACTION_TYPE } from '../domain/action-types.ts';
import { plainDeclaration } from '../domain/action.ts';
import type { ActionDeclaration, ActionRejection, ActionPolicy } from '../domain/action.ts';
import type { ActionNode, RunState } from './state.ts';

/** Shared empty list of all nodes, never modified: most lists stay empty. */
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
    questions: 0,
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

/** A placeholder for an action that the parser could not read: it has a name and can be a dependency. */
export function placeholder(rejection: ActionRejection): ActionDeclaration {
  return plainDeclaration({
    ordinal: rejection.ordinal,
    id: rejection.id,
    type: rejection.type ?? DEFAULT_ACTION_TYPE,
    mode: rejection.mode ?? 'async',
    name: rejection.name ?? '',
    dependsOn: [],
  });
}

/** The most restrictive policy, for an action that could not be read. */
export const placeholderPolicy: ActionPolicy = {
  effects: 'unsafe',
  timeoutMs: 0,
  retry: { maxAttempts: 1, backoff: 'none', delayMs: 0, maxDelayMs: 0 },
  concurrency: null,
  dispatch: 'eager',
  needsApproval: false,
  estimateMs: 0,
  refusal: null,
};

/** Whether two declarations have the same content, regardless of their position (P6). */
export function sameAction(a: ActionDeclaration, b: ActionDeclaration): boolean {
  return contentOf(a) === contentOf(b);
}

const POSITION_FIELDS: ReadonlySet<string> = new Set<keyof ActionDeclaration>(['ordinal', 'span', 'embeddedInThought']);

function contentOf(action: ActionDeclaration): string {
  return JSON.stringify(Object.entries(action).filter(([field]) => !POSITION_FIELDS.has(field)));
}
