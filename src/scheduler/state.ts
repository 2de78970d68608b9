/**
 * The scheduler's state of one run: its actions as a graph, the ready queue, the current generation, counters and
 * budgets. Data only; only `step` and the files of its duties write it.
 *
 * Actions refer to each other directly. `snapshot` and `restore` convert them to plain JSON and back (J9).
 */
import type { ActionDeclaration, ActionKey, ActionMode, ActionPolicy } from '../domain/action.ts';
import type { RunError } from '../domain/errors.ts';
import type { FinishReason } from '../domain/ports/model.ts';
import type { Spent } from '../domain/spent.ts';
import type { Finality } from '../domain/protocol-event.ts';
import { NOTHING_SPENT } from '../domain/spent.ts';
import type { RunPolicy, Settlement } from './types.ts';

/**
 * The stage of an action. `held`: waits until its generation has ended normally (S14). `judging`: policies are being
 * evaluated (C9). `asking`: the request
 * for an approval or an answer is being prepared; `approval`: waits for the decision (J8). `recalling`: an earlier outcome is being looked up (P6);
 * `behind`: the lookup waits for an action with the same idempotency key, which waits for a person or a client.
 * `retrying`: waits for its backoff (S7). `calling`: the call for the client is being checked; `awaiting_client`: waits
 * for the client's result (C3).
 */
export type Stage =
  | 'waiting'
  | 'evaluating'
  | 'held'
  | 'judging'
  | 'asking'
  | 'approval'
  | 'recalling'
  | 'behind'
  | 'ready'
  | 'running'
  | 'retrying'
  | 'calling'
  | 'awaiting_client'
  | 'settled';

/** How sync barriers apply to an action (S4): not at all, by its position in the line, or individually. */
export type Barred = 'open' | 'line' | 'listed';

export interface ActionNode {
  readonly key: ActionKey;
  /** Index in `RunState.nodes`: document order over the whole run. */
  readonly index: number;
  readonly iteration: number;
  readonly id: string;
  /** Replaced by a second declaration that adds parameters (P6). */
  declaration: ActionDeclaration;
  policy: ActionPolicy;
  /** The parser rejected it: `declaration` is a placeholder. */
  readonly refused: boolean;
  /** As declared, except that an awaited fire_and_forget action is async (S4). */
  mode: ActionMode;
  stage: Stage;
  /** Counted among the open actions; false for an action that was rejected when it was declared. */
  admitted: boolean;
  queued: boolean;
  settlement: Settlement | null;
  /** Settled so that dependents proceed: completed, or counted as null (S6). */
  satisfied: boolean;
  /** Number of the latest started attempt; 0 before the first. */
  attempt: number;
  /** Attempts that have ended with a question; they do not count as failed (J8). */
  questions: number;
  /** Names in `depends_on` that are not bound yet. */
  unresolved: readonly string[];
  dependencies: readonly ActionNode[];
  dependents: ActionNode[];
  /** Number of dependencies that have not settled. */
  unmet: number;
  successes: number;
  /** Number of dependencies that settled as null (S6). */
  nulls: number;
  /** The first dependency that failed. */
  doomedBy: ActionNode | null;
  /** The producer of each reference name of this action (P12). */
  bound: readonly (readonly [name: string, producer: ActionNode])[];
  barred: Barred;
  /** Sync actions that wait for this one and therefore do not block it (S4). */
  exempt: readonly ActionNode[];
  /** For a sync action: the `listed` actions that it blocks. */
  holds: readonly ActionNode[];
  /** For a `listed` action: how many sync actions block it. */
  holdCount: number;
  /** Limits in addition to the run's slots: its target, its type (S5). */
  limits: readonly Limit[];
  /** `cuts` of its limit when the latest attempt started. */
  cutsAtStart: number;
  /** Reservation for the child that its running attempt started (S12). */
  reserved: Spent | null;
  /** The heap that contains it, and its index there. */
  heap: ActionNode[] | null;
  heapAt: number;
  /** Copied from the declaration for fast heap comparisons. */
  readonly priority: number;
  /** Longest remaining path in milliseconds, including its own estimate (S5). */
  pathMs: number;
  /** Scratch value of graph searches; undefined between steps. */
  mark: number;
}

/** Concurrency limit of one target or one type (S5). */
export interface Limit {
  readonly name: string;
  /** The maximum from the manifest or the run's slots. */
  ceiling: number;
  /** The current maximum: below the ceiling after an overload. */
  max: number;
  running: number;
  /** How often an overload has lowered `max`; attempts that started before the last reduction do not count again. */
  cuts: number;
  /** Attempts that succeeded at this `max`. */
  successes: number;
  readonly awaited: LimitQueue;
  /** Separate, because fire_and_forget actions in the lane may not use the last slot while awaited ones may. */
  readonly background: LimitQueue;
}

export interface LimitQueue {
  /** Number of actions of this target in a lane; the others wait in `parked`. */
  inLane: number;
  readonly parked: ActionNode[];
}

/** Heaps of ready actions, by the slots that they need. */
export interface Lanes {
  readonly slot: ActionNode[];
  /** Workflow and agent actions, which use no slot. */
  readonly free: ActionNode[];
  /** fire_and_forget actions, which never use the last free slot. */
  readonly background: ActionNode[];
}

export interface ClosedResponse {
  readonly final: Finality;
  readonly refers: readonly ActionNode[];
  readonly hasReferences: boolean;
}

/** What is known about the values in a generation's responses (P10, P13). */
export type AnswerCheck = 'none' | 'asked' | { readonly missing: boolean; readonly pending: boolean };

/** The current iteration's generation and its declarations. */
export interface Generation {
  readonly iteration: number;
  /** Only an answer is allowed (S11). */
  readonly last: boolean;
  streaming: boolean;
  /** The run asked it to stop: its finish reason is not an error. */
  stopped: boolean;
  /** An action failed under `fail_fast`: later declarations are cancelled. */
  failedFast: boolean;
  finish: FinishReason | null;
  error: RunError | null;
  answered: boolean;
  readonly responses: ClosedResponse[];
  answerCheck: AnswerCheck;
  readonly nodes: ActionNode[];
  /** Number of queued actions. */
  accepted: number;
  readonly syncs: ActionNode[];
  /** Sync actions before this index have settled. */
  syncFront: number;
  /** Actions without a `depends_on` field that sync actions may block, in document order. */
  readonly line: ActionNode[];
  /** Actions before this index of `line` are released. */
  lineFront: number;
  readonly listed: ActionNode[];
  /** Maps a `depends_on` name that is not declared yet to the actions that wait for it. */
  readonly pending: Map<string, ActionNode[]>;
}

/** The phase of the run. `parked` means that it waits for people and clients only (J8, C3). */
export type Phase = 'new' | 'live' | 'parked' | 'ended' | 'drained';

export type BudgetName = 'iterations' | 'seconds' | 'model_calls' | 'tokens' | 'cost' | 'actions';

/** Opaque to callers except through queries; `step` updates it in place. */
export interface RunState {
  phase: Phase;
  policy: RunPolicy;
  readonly nodes: ActionNode[];
  readonly byKey: Map<ActionKey, ActionNode>;
  /** The newest action that adds each feed. */
  readonly feeds: Map<string, ActionNode>;
  /** The newest action of each id, and of each output key (P6, P12). */
  readonly ids: Map<string, ActionNode>;
  readonly outputKeys: Map<string, ActionNode>;
  /** Actions by name, in document order. */
  readonly named: Map<string, ActionNode[]>;
  /** Admitted actions by idempotency key, in document order (P6). */
  readonly sharing: Map<string, ActionNode[]>;
  /** Actions by target, in the order in which their judgement began (C9). */
  readonly judged: Map<string, ActionNode[]>;
  readonly limits: Map<string, Limit>;
  readonly lanes: Lanes;
  generation: Generation | null;
  /** Number of running actions that use a slot. */
  slotsUsed: number;
  /** Number of unsettled sync and async actions; below, of unsettled fire_and_forget ones. */
  open: number;
  openBackground: number;
  /** Part of `open`: actions that run or will proceed on their own; below, actions that wait for an approval or a client. */
  active: number;
  asking: number;
  /** Unsettled fire_and_forget actions that run or will proceed on their own. */
  activeBackground: number;
  /** Actions whose new edges are not yet in `pathMs`. */
  dirty: ActionNode[];
  mark: number;
  admittedActions: number;
  modelCalls: number;
  tokens: number;
  /** US dollars, for the calls whose price is known. */
  cost: number;
  /** Sessions started, including nested ones (M7). */
  children: number;
  /** Sessions started by this run's own actions. */
  directChildren: number;
  /** Reserved for running children, in addition to what is spent (S12). */
  reserved: Spent;
  /** When the time budget last started to count, and the milliseconds that had passed before. */
  since: number;
  elapsedMs: number;
  /** Budgets reported as exceeded, in order (S12). */
  exceeded: BudgetName[];
  overtime: boolean;
  budgetTimer: boolean;
  /** Consecutive iterations without a response and without an accepted action (S11). */
  idle: number;
  /** Consecutive generations that ended early (P15). */
  broken: number;
  /** Generations interrupted by a crash (J2). */
  interrupted: number;
  /** An answer did not end the run because values were missing: this happens once (P10). */
  missingShown: boolean;
}

const NO_POLICY: RunPolicy = {
  source: 'text',
  maxParallelActions: 1,
  maxIterations: 1,
  maxActions: 0,
  seconds: 0,
  modelCalls: 0,
  tokens: null,
  failFast: false,
  responseDefault: 'auto',
  onFailedFinal: 'continue',
};

/** A run that has not started. */
export function initialState(): RunState {
  return {
    phase: 'new',
    policy: NO_POLICY,
    nodes: [],
    byKey: new Map(),
    ids: new Map(),
    outputKeys: new Map(),
    feeds: new Map(),
    named: new Map(),
    sharing: new Map(),
    judged: new Map(),
    limits: new Map(),
    lanes: { slot: [], free: [], background: [] },
    generation: null,
    slotsUsed: 0,
    open: 0,
    openBackground: 0,
    active: 0,
    asking: 0,
    activeBackground: 0,
    dirty: [],
    mark: 0,
    admittedActions: 0,
    modelCalls: 0,
    tokens: 0,
    cost: 0,
    children: 0,
    directChildren: 0,
    reserved: NOTHING_SPENT,
    since: 0,
    elapsedMs: 0,
    exceeded: [],
    overtime: false,
    budgetTimer: false,
    idle: 0,
    broken: 0,
    interrupted: 0,
    missingShown: false,
  };
}

export function newLimit(name: string, ceiling: number): Limit {
  return {
    name,
    ceiling,
    max: ceiling,
    running: 0,
    cuts: 0,
    successes: 0,
    awaited: { inLane: 0, parked: [] },
    background: { inLane: 0, parked: [] },
  };
}

export function newGeneration(iteration: number, last: boolean): Generation {
  return {
    iteration,
    last,
    streaming: true,
    stopped: false,
    failedFast: false,
    finish: null,
    error: null,
    answered: false,
    responses: [],
    answerCheck: 'none',
    nodes: [],
    accepted: 0,
    syncs: [],
    syncFront: 0,
    line: [],
    lineFront: 0,
    listed: [],
    pending: new Map(),
  };
}
