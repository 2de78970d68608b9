/**
 * The plan report (S13): what a set of declarations would do, in waves, and how long it would take.
 *
 * Waves are for people. Nothing waits for a wave to end: an action starts when its own dependencies
 * have settled (S2). Dependencies and barriers are the scheduler's own: declarations are fed through
 * `step`, so the report and the run cannot disagree.
 */
import type {
  ActionDeclaration,
  ActionMode,
  ActionRejection,
  ActionPolicy,
  ActionType,
  RejectionCode,
} from '../domain/action.ts';
import { limits } from '../domain/limits.ts';
import type { ActionNode, RunState } from './state.ts';
import { initialState, step } from './step.ts';
import type { RunPolicy, SchedulerInput } from './types.ts';

/** One action of a plan, with its dependencies already resolved to ids. */
export interface PlannedAction {
  readonly id: string;
  /** Its place in the generation's text. An id alone may be shared with a rejected action. */
  readonly ordinal?: number;
  readonly type: ActionType;
  readonly mode: ActionMode;
  readonly name: string;
  /** Explicit and implicit dependencies in the same generation; ids that are not in the plan are ignored. */
  readonly dependsOn: readonly string[];
  /** Those of them that were rejected, whatever else has their id: shown, but they hold nothing. */
  readonly dependsOnRejected?: readonly string[];
  /** Dependencies on actions of earlier iterations: shown, but they hold nothing any more. */
  readonly earlier?: readonly string[];
  /** Sync actions whose barrier it stands behind (S4). */
  readonly heldBy?: readonly string[];
  /** Expected milliseconds: learned, else the timeout. */
  readonly estimateMs: number;
}

export interface PlanEstimates {
  /** One action after the other. */
  readonly sequential_ms: number;
  /** Wave after wave, each as long as its longest action. */
  readonly waves_ms: number;
  /** The longest path through dependencies and barriers: the least that any order can reach. */
  readonly critical_path_ms: number;
  /** `sequential_ms / critical_path_ms`, to two digits; 1 for an empty plan. */
  readonly speedup: number;
}

/** A sync action that holds later ones: they start in wave `wave` or later. */
export interface PlanBarrier {
  readonly id: string;
  /** Index of the wave in which the sync action stands, from 0. */
  readonly wave: number;
  readonly holds: readonly string[];
}

export interface PlanReport {
  /** In document order. */
  readonly actions: readonly PlannedAction[];
  readonly byType: Readonly<Partial<Record<ActionType, number>>>;
  readonly byMode: Readonly<Partial<Record<ActionMode, number>>>;
  /** Ids by wave; within a wave in document order. */
  readonly waves: readonly (readonly string[])[];
  readonly barriers: readonly PlanBarrier[];
  readonly estimates: PlanEstimates;
  /** Ids along the longest path. */
  readonly criticalPath: readonly string[];
  /** Earliest start of each action in milliseconds, with a slot for everybody; in document order. */
  readonly startsMs: readonly number[];
  /** `to` depends on `from`; barriers are not among them. */
  readonly edges: readonly { readonly from: string; readonly to: string }[];
}

/**
 * Counts, waves and estimates of any set of actions.
 *
 * @throws RangeError for dependencies in a circle, which the scheduler never accepts
 */
export function buildPlan(actions: readonly PlannedAction[]): PlanReport {
  const nodes = actions.map((action): PlanNode => ({ action, level: 0, startMs: 0, before: null }));
  const byId = new Map(nodes.map((node) => [node.action.id, node]));
  const edges: { from: string; to: string }[] = [];
  const dependencies = new Map<PlanNode, PlanNode[]>();
  const barriers = new Map<PlanNode, PlanNode[]>();
  for (const node of nodes) {
    const rejected = new Set(node.action.dependsOnRejected);
    const own = known(
      byId,
      node,
      node.action.dependsOn.filter((id) => !rejected.has(id)),
    );
    for (const dependency of own) edges.push({ from: dependency.action.id, to: node.action.id });
    dependencies.set(node, own);
    barriers.set(node, known(byId, node, node.action.heldBy ?? []));
  }
  for (const node of inOrder(nodes, dependencies, barriers)) {
    for (const earlier of [...(dependencies.get(node) ?? []), ...(barriers.get(node) ?? [])]) {
      node.level = Math.max(node.level, earlier.level + 1);
      const finish = earlier.startMs + earlier.action.estimateMs;
      if (node.before === null || finish > node.startMs) {
        node.before = earlier;
        node.startMs = finish;
      }
    }
  }
  const waves = wavesOf(nodes);
  const last = nodes.reduce<PlanNode | null>(
    (best, node) => (best === null || endOf(node) > endOf(best) ? node : best),
    null,
  );
  const sequential = sum(nodes.map(({ action }) => action.estimateMs));
  const criticalMs = last === null ? 0 : endOf(last);
  return {
    actions,
    byType: countBy(actions, ({ type }) => type),
    byMode: countBy(actions, ({ mode }) => mode),
    waves: waves.map((wave) => wave.map(({ action }) => action.id)),
    barriers: barriersOf(nodes, barriers),
    estimates: {
      sequential_ms: sequential,
      waves_ms: sum(waves.map((wave) => Math.max(...wave.map(({ action }) => action.estimateMs)))),
      critical_path_ms: criticalMs,
      speedup: criticalMs === 0 ? 1 : Math.round((100 * sequential) / criticalMs) / 100,
    },
    criticalPath: pathTo(last),
    startsMs: nodes.map(({ startMs }) => startMs),
    edges,
  };
}

interface PlanNode {
  readonly action: PlannedAction;
  level: number;
  startMs: number;
  /** What it waits for longest. */
  before: PlanNode | null;
}

const endOf = ({ startMs, action }: PlanNode): number => startMs + action.estimateMs;
const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

function known(byId: ReadonlyMap<string, PlanNode>, node: PlanNode, ids: readonly string[]): PlanNode[] {
  const found = new Set<PlanNode>();
  for (const id of ids) {
    const other = byId.get(id);
    if (other !== undefined && other !== node) found.add(other);
  }
  return [...found];
}

/** What comes first stands first. Where barriers close a circle with dependencies, the barriers give way. */
function inOrder(
  nodes: readonly PlanNode[],
  dependencies: ReadonlyMap<PlanNode, PlanNode[]>,
  barriers: Map<PlanNode, PlanNode[]>,
): PlanNode[] {
  const first = sorted(nodes, (node) => [...(dependencies.get(node) ?? []), ...(barriers.get(node) ?? [])]);
  if (first.length === nodes.length) return first;
  const placed = new Set(first);
  for (const node of nodes) {
    if (!placed.has(node))
      barriers.set(
        node,
        (barriers.get(node) ?? []).filter((sync) => placed.has(sync)),
      );
  }
  const second = sorted(nodes, (node) => [...(dependencies.get(node) ?? []), ...(barriers.get(node) ?? [])]);
  if (second.length === nodes.length) return second;
  const ids = nodes.filter((node) => !second.includes(node)).map(({ action }) => action.id);
  throw new RangeError(`A plan cannot be drawn of actions that depend on each other in a circle: ${ids.join(', ')}`);
}

function sorted(nodes: readonly PlanNode[], before: (node: PlanNode) => readonly PlanNode[]): PlanNode[] {
  const open = new Map<PlanNode, number>();
  const after = new Map<PlanNode, PlanNode[]>();
  const order: PlanNode[] = [];
  for (const node of nodes) {
    const earlier = before(node);
    open.set(node, earlier.length);
    if (earlier.length === 0) order.push(node);
    for (const other of earlier) {
      const list = after.get(other);
      if (list === undefined) after.set(other, [node]);
      else list.push(node);
    }
  }
  for (const node of order) {
    for (const next of after.get(node) ?? []) {
      const left = (open.get(next) ?? 0) - 1;
      open.set(next, left);
      if (left === 0) order.push(next);
    }
  }
  return order;
}

function wavesOf(nodes: readonly PlanNode[]): PlanNode[][] {
  const waves: PlanNode[][] = [];
  for (const node of nodes) {
    while (waves.length <= node.level) waves.push([]);
    waves[node.level]?.push(node);
  }
  return waves;
}

function barriersOf(nodes: readonly PlanNode[], barriers: ReadonlyMap<PlanNode, readonly PlanNode[]>): PlanBarrier[] {
  const held = new Map<PlanNode, string[]>();
  for (const node of nodes) {
    for (const sync of barriers.get(node) ?? []) {
      const list = held.get(sync);
      if (list === undefined) held.set(sync, [node.action.id]);
      else list.push(node.action.id);
    }
  }
  return nodes
    .filter((node) => held.has(node))
    .map((node) => ({ id: node.action.id, wave: node.level, holds: held.get(node) ?? [] }));
}

function pathTo(last: PlanNode | null): string[] {
  const path: string[] = [];
  for (let at = last; at !== null; at = at.before) path.push(at.action.id);
  return path.reverse();
}

function countBy<Name extends string>(
  actions: readonly PlannedAction[],
  nameOf: (action: PlannedAction) => Name,
): Partial<Record<Name, number>> {
  const counted: Partial<Record<Name, number>> = {};
  for (const action of actions) counted[nameOf(action)] = (counted[nameOf(action)] ?? 0) + 1;
  return counted;
}

// --- from the scheduler's state ------------------------------------------------------------------

/** The plan of what a generation of a run declared; rejected actions are not in it. */
export function planOf(state: RunState, iteration: number): PlanReport {
  return buildPlan(plannedActions(state, iteration));
}

/** The accepted actions of one generation, as the scheduler understood them. */
function plannedActions(state: RunState, iteration: number): PlannedAction[] {
  const accepted = state.nodes.filter((node) => node.iteration === iteration && node.queued);
  const syncs = accepted.filter(({ declaration }) => declaration.mode === 'sync');
  return accepted.map((node) => planned(node, syncs));
}

function planned(node: ActionNode, syncs: readonly ActionNode[]): PlannedAction {
  const { id, declaration, policy, iteration, mode, dependencies } = node;
  const held = declaration.dependsOn === null;
  const own = dependencies.filter((dependency) => dependency.iteration === iteration);
  return {
    id,
    ordinal: declaration.ordinal,
    type: declaration.type,
    mode,
    name: declaration.name,
    dependsOn: own.map((dependency) => dependency.id),
    dependsOnRejected: own.filter(({ queued }) => !queued).map((dependency) => dependency.id),
    earlier: dependencies.filter((dependency) => dependency.iteration !== iteration).map((dependency) => dependency.id),
    heldBy: held
      ? syncs.filter((sync) => sync.index < node.index && !node.exempt.includes(sync)).map((sync) => sync.id)
      : [],
    estimateMs: policy.estimateMs,
  };
}

/** What a parser makes of one `<action>`, in document order. */
export type PlanEntry =
  | { readonly action: ActionDeclaration; readonly policy: ActionPolicy }
  | { readonly rejection: ActionRejection };

export interface StaticPlan {
  readonly report: PlanReport;
  /** By the parser or by the scheduler. */
  readonly rejected: readonly { readonly id: string; readonly code: RejectionCode; readonly message: string }[];
  readonly warnings: readonly { readonly code: string; readonly message: string }[];
}

const PLAN_POLICY: RunPolicy = {
  source: 'text',
  maxParallelActions: limits.maxParallelActions,
  maxIterations: 1,
  maxActions: limits.actionsPerRun,
  seconds: 0,
  modelCalls: limits.modelCallsPerRun,
  tokens: null,
  failFast: false,
  responseDefault: 'auto',
  onFailedFinal: 'end',
};

/** The plan of one generation that does not run: the same decisions as in a run, without its effects. */
export function planStatically(entries: readonly PlanEntry[]): StaticPlan {
  const state = initialState();
  const rejected: { id: string; code: RejectionCode; message: string }[] = [];
  const warnings: { code: string; message: string }[] = [];
  const tell = (input: SchedulerInput): void => {
    for (const command of step(state, input).commands) {
      if (command.type === 'warn') warnings.push({ code: command.code, message: command.message });
      if (command.type !== 'settle' || command.status !== 'rejected') continue;
      const id = state.byKey.get(command.key)?.id ?? command.key;
      rejected.push({ id, code: command.code, message: command.message });
    }
  };
  tell({ type: 'run_started', at: 0, policy: PLAN_POLICY });
  for (const entry of entries) {
    if ('rejection' in entry) tell({ type: 'action_refused', at: 0, rejection: entry.rejection });
    else tell({ type: 'action_declared', at: 0, action: entry.action, policy: entry.policy });
  }
  tell({ type: 'generation_ended', at: 0, finish: 'stop', answered: false, error: null });
  return { report: planOf(state, 1), rejected, warnings };
}
