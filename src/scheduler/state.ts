/**
 * What the scheduler remembers of one run: its actions as a graph, the ready queue, the current
 * generation, the counters and the budgets. Data only; `step.ts` is the one writer.
 *
 * Actions point at each other directly. `snapshot` and `restore` turn that into plain JSON and back (J9).
 */
import type { ActionDeclaration, ActionKey, ActionMode, ActionPolicy } from '../domain/action.ts';
import type { FinishReason } from '../domain/ports.ts';
import type { Spent } from '../domain/spent.ts';
import type { Finality } from '../domain/protocol-event.ts';
import { NOTHING_SPENT } from '../domain/spent.ts';
import type { RunPolicy, Settlement } from './types.ts';

/**
 * Where an action stands. `held` waits for a good end of its generation (S14); `asking` until it is known what a
 * human is asked; `approval` waits for the answer (J8); `recalling` until it is known whether an earlier outcome stands for it (P6);
 * `retrying` waits for its backoff (S7).
 */
export type Stage =
  | 'waiting'
  | 'evaluating'
  | 'held'
  | 'asking'
  | 'approval'
  | 'recalling'
  | 'ready'
  | 'running'
  | 'retrying'
  | 'settled';

/** How sync barriers treat an action (S4): not at all, by its place in the line, or one by one because some are exempt. */
export type Barred = 'open' | 'line' | 'listed';

export interface ActionNode {
  readonly key: ActionKey;
  /** Position in `RunState.nodes`: document order over the whole run. */
  readonly index: number;
  readonly iteration: number;
  readonly id: string;
  readonly declaration: ActionDeclaration;
  readonly policy: ActionPolicy;
  /** The parser refused it: `declaration` stands in for what could not be read. */
  readonly refused: boolean;
  /** As declared, except that an awaited fire_and_forget is async (S4). */
  mode: ActionMode;
  stage: Stage;
  /** Counted among the open actions; an action that was rejected at its declaration never is. */
  admitted: boolean;
  queued: boolean;
  settlement: Settlement | null;
  /** Settled in a way that lets dependents go on: completed, or counted as null (S6). */
  satisfied: boolean;
  /** The latest attempt that was started; 0 before the first. */
  attempt: number;
  /** Names in `depends_on` that nothing is bound to yet. */
  unresolved: readonly string[];
  dependencies: readonly ActionNode[];
  dependents: ActionNode[];
  /** Dependencies that have not settled. */
  unmet: number;
  successes: number;
  /** Dependencies that settled as null (S6). */
  nulls: number;
  /** The first dependency that ended badly. */
  doomedBy: ActionNode | null;
  /** What each reference name means to this action (P12). */
  bound: readonly (readonly [name: string, producer: ActionNode])[];
  barred: Barred;
  /** Sync actions that wait for this one and therefore do not hold it (S4). */
  exempt: readonly ActionNode[];
  /** Of a sync action: the `listed` actions that it holds. */
  holds: readonly ActionNode[];
  /** Of a `listed` action: how many sync actions hold it. */
  holdCount: number;
  /** What bounds it beside the run's slots: its target, its type (S5). */
  limits: readonly Limit[];
  /** How often its pace had been lowered when its latest attempt started. */
  cutsAtStart: number;
  /** What is set aside for the child that its running attempt started (S12). */
  reserved: Spent | null;
  /** The heap that it waits in and its place there. */
  heap: ActionNode[] | null;
  heapAt: number;
  /** The declaration's: here, with the other two, because heaps of thousands compare by nothing else. */
  readonly priority: number;
  /** Longest remaining path in milliseconds, its own estimate included (S5). */
  pathMs: number;
  /** Scratch for graph searches; means nothing between steps. */
  mark: number;
}

/** Simultaneous executions of one target or of one type (S5). */
export interface Limit {
  readonly name: string;
  /** What the manifest or the run's slots allow. */
  ceiling: number;
  /** What is allowed now: less than the ceiling after an overload. */
  max: number;
  running: number;
  /** How often an overload has lowered `max`; an attempt of before the last time does not count again. */
  cuts: number;
  /** Attempts that succeeded at this `max`. */
  successes: number;
  readonly awaited: LimitQueue;
  /** Apart, because a fire_and_forget action in the lane may be kept from the last slot while awaited ones are not. */
  readonly background: LimitQueue;
}

export interface LimitQueue {
  /** Actions of this target in a lane; the others wait in `parked`. */
  inLane: number;
  readonly parked: ActionNode[];
}

/** Heaps of ready actions, by what they need of the run's slots. */
export interface Lanes {
  readonly slot: ActionNode[];
  /** Workflow and agent actions hold no slot. */
  readonly free: ActionNode[];
  /** fire_and_forget: never the last free slot. */
  readonly background: ActionNode[];
}

export interface ClosedResponse {
  readonly final: Finality;
  readonly refers: readonly ActionNode[];
}

/** The current iteration's generation and what it declared. */
export interface Generation {
  readonly iteration: number;
  /** It may only answer (S11). */
  readonly last: boolean;
  streaming: boolean;
  /** We asked for its end: how it then ends is nobody's fault. */
  stopped: boolean;
  /** An action failed under `fail_fast`: what is declared from here on is cancelled. */
  failedFast: boolean;
  finish: FinishReason | null;
  error: { readonly code: string; readonly message: string } | null;
  answered: boolean;
  readonly responses: ClosedResponse[];
  readonly nodes: ActionNode[];
  /** Actions that were queued. */
  accepted: number;
  readonly syncs: ActionNode[];
  /** `syncs` before this place have settled. */
  syncFront: number;
  /** Actions without a `depends_on` field that sync actions may hold, in document order. */
  readonly line: ActionNode[];
  /** `line` before this place is released. */
  lineFront: number;
  readonly listed: ActionNode[];
  /** By a name in `depends_on` that is not declared yet: who waits for it. */
  readonly pending: Map<string, ActionNode[]>;
}

/** How far the run is: `parked` is waiting for approvals only (J8). */
export type Phase = 'new' | 'live' | 'parked' | 'ended' | 'drained';

export type BudgetName = 'iterations' | 'seconds' | 'model_calls' | 'tokens' | 'cost' | 'actions';

/** Opaque to callers except through the queries; `step` updates it in place. */
export interface RunState {
  phase: Phase;
  policy: RunPolicy;
  readonly nodes: ActionNode[];
  readonly byKey: Map<ActionKey, ActionNode>;
  /** The newest action of each id, and of each output key (P6, P12). */
  readonly ids: Map<string, ActionNode>;
  readonly outputKeys: Map<string, ActionNode>;
  /** Actions by name, in document order. */
  readonly named: Map<string, ActionNode[]>;
  readonly limits: Map<string, Limit>;
  readonly lanes: Lanes;
  generation: Generation | null;
  /** Running actions that hold a slot. */
  slotsUsed: number;
  /** Unsettled sync and async actions; unsettled fire_and_forget ones. */
  open: number;
  openBackground: number;
  /** Of `open`: those at work or about to be; those that ask a human. */
  active: number;
  asking: number;
  /** Actions whose new edges are not yet in `pathMs`. */
  dirty: ActionNode[];
  mark: number;
  admittedActions: number;
  modelCalls: number;
  tokens: number;
  /** US dollars, of the calls whose price is known. */
  cost: number;
  /** Sessions that were started, with those that these started (M7). */
  children: number;
  /** Those of them that this run's own actions started. */
  directChildren: number;
  /** Set aside for children that are at work, beside what is spent (S12). */
  reserved: Spent;
  /** When the seconds began to count again, and how many milliseconds had passed before. */
  since: number;
  elapsedMs: number;
  /** Budgets that were reported as exceeded, in that order (S12). */
  exceeded: BudgetName[];
  overtime: boolean;
  budgetTimer: boolean;
  /** Iterations in a row without a response and without an accepted action (S11). */
  idle: number;
  /** Generations in a row that broke off (P15). */
  broken: number;
  /** Generations that a crash cut (J2). */
  interrupted: number;
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
    named: new Map(),
    limits: new Map(),
    lanes: { slot: [], free: [], background: [] },
    generation: null,
    slotsUsed: 0,
    open: 0,
    openBackground: 0,
    active: 0,
    asking: 0,
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
