/** Queries of the engine on a run's state. They change nothing. */
import type { ActionDeclaration, ActionKey, ActionStatus } from '../domain/action.ts';
import { limits } from '../domain/limits.ts';
import { producerOf } from './graph.ts';
import type { ActionNode, RunState } from './state.ts';

/** The current meaning of a name: the newest action with that output key, else with that id (P12, P6). */
export function lookup(
  state: RunState,
  name: string,
): { readonly key: ActionKey; readonly status: ActionStatus } | null {
  const node = producerOf(state, name);
  return node === null ? null : { key: node.key, status: statusOfNode(node) };
}

/**
 * The action to which each reference of an action was bound: one declared before it, or a later one that it names in
 * `depends_on` (P12). Names that are not actions are absent. The object has no prototype, so any name may be looked up.
 */
export function bindings(state: RunState, key: ActionKey): Readonly<Record<string, ActionKey>> {
  const bound = Object.create(null) as Record<string, ActionKey>;
  for (const [name, producer] of state.byKey.get(key)?.bound ?? []) bound[name] = producer.key;
  return bound;
}

/** Null for a key that was not declared. */
export function statusOf(state: RunState, key: ActionKey): ActionStatus | null {
  const node = state.byKey.get(key);
  return node === undefined ? null : statusOfNode(node);
}

/** Explicit and implicit dependencies bound so far, each once (S3). Barriers are not included. */
export function dependenciesOf(state: RunState, key: ActionKey): readonly ActionKey[] {
  return state.byKey.get(key)?.dependencies.map((dependency) => dependency.key) ?? [];
}

/** The declaration; for an action that the parser rejected, a placeholder with its id and the readable fields. */
export function action(state: RunState, key: ActionKey): ActionDeclaration | null {
  return state.byKey.get(key)?.declaration ?? null;
}

/** Whether an action is fire_and_forget and nothing waits for it (S4). */
export function isFireAndForget(state: RunState, key: ActionKey): boolean {
  return state.byKey.get(key)?.mode === 'fire_and_forget';
}

/** Whether text is still arriving, but no declared action can proceed until a person or a client has answered (J8, C3). */
export function isBlockedByOthers({ phase, generation, active, asking }: RunState): boolean {
  return phase === 'live' && generation?.streaming === true && active === 0 && asking > 0;
}

/** Whether only people and clients can advance a run that does not wait yet: not all answers that came together were taken. */
export function lacksAnswers({ phase, generation, active, asking }: RunState): boolean {
  return phase === 'live' && generation?.streaming === false && active === 0 && asking > 0;
}

/**
 * Whether the run waits for people and clients only: nothing of it is running, not even a fire_and_forget action (J8, C3,
 * S4). Otherwise its host is still needed. Also for a run that has ended, whose fire_and_forget actions wait for them.
 */
export function isAtRest({ phase, active, activeBackground }: RunState): boolean {
  return (phase === 'parked' || phase === 'ended') && active === 0 && activeBackground === 0;
}

/** Number of actions by status. */
export function counts(state: RunState): Readonly<Record<ActionStatus, number>> {
  const found: Record<ActionStatus, number> = {
    waiting: 0,
    ready: 0,
    running: 0,
    retrying: 0,
    awaiting_approval: 0,
    awaiting_client: 0,
    completed: 0,
    failed: 0,
    skipped: 0,
    cancelled: 0,
    rejected: 0,
  };
  for (const node of state.nodes) found[statusOfNode(node)] += 1;
  return found;
}

/** What a run has used so far, including its children (S12). */
export function usedBy({ admittedActions, modelCalls, tokens, cost, elapsedMs, since, phase }: RunState, now: number) {
  const elapsed = elapsedMs + (phase === 'live' ? now - since : 0);
  return { actions: admittedActions, modelCalls, tokens, cost, seconds: elapsed / 1_000 };
}

/**
 * Number of calls of the same target that have started or may start before this judged action: those that were allowed, and
 * those whose judgement began earlier. So actions that are judged at the same time exceed no limit on calls together (C9).
 */
export function callsBefore(state: RunState, key: ActionKey): number {
  const node = state.byKey.get(key);
  let calls = 0;
  let isEarlier = true;
  for (const other of state.judged.get(node?.policy.judged ?? '') ?? []) {
    if (other === node) isEarlier = false;
    else if (mayHaveStarted(other) || (other.stage === 'judging' && isEarlier)) calls += 1;
  }
  return calls;
}

function mayHaveStarted({ stage, attempt }: ActionNode): boolean {
  if (stage === 'settled') return attempt > 0;
  return stage !== 'waiting' && stage !== 'evaluating' && stage !== 'held' && stage !== 'judging';
}

/** Tokens that the current generation may use, so that enough is left for the last one (S12); null means no budget. */
export function generationTokens({ policy, tokens, generation }: RunState): number | null {
  if (policy.tokens === null) return null;
  const reserve = generation?.last === true ? 0 : limits.lastGenerationTokens;
  return Math.max(0, policy.tokens - tokens - reserve);
}

function statusOfNode({ stage, settlement }: ActionNode): ActionStatus {
  switch (stage) {
    case 'evaluating':
    case 'held':
    case 'judging':
    case 'asking':
    case 'recalling':
    case 'behind':
      return 'waiting';
    case 'approval':
      return 'awaiting_approval';
    case 'calling':
      return 'waiting';
    case 'settled':
      return settlement?.status ?? 'cancelled';
    default:
      return stage;
  }
}
