/**
 * The plan report (S13): shows a set of declarations in waves, with the estimated duration.
 *
 * Waves are for readers only. Nothing waits for a wave to end: an action starts when its own dependencies have settled
 * (S2). Dependencies and barriers come from the scheduler: the declarations pass through `step`, so the report and the
 * run cannot differ.
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

/** One action of a plan, with its dependencies resolved to ids. */
export interface PlannedAction {
  readonly id: string;
  /** Its position in the generation's text. A rejected action may have the same id. */
  readonly ordinal?: number;
  readonly type: ActionType;
  readonly mode: ActionMode;
  readonly name: string;
  /** Explicit and implicit dependencies in the same generation. Ids that are not in the plan are ignored. */
  readonly dependsOn: readonly string[];
  /** Dependencies that were rejected, even if another action has the same id. Shown, but they block nothing. */
  readonly dependsOnRejected?: readonly string[];
  /** Dependencies on actions of earlier iterations. Shown, but they no longer block anything. */
  readonly earlier?: readonly string[];
  /** Sync actions whose barrier blocks it (S4). */
  readonly heldBy?: readonly string[];
  /** Expected milliseconds: learned, else the timeout. */
  readonly estimateMs: number;
}

export interface PlanEstimates {
  /** One action after the other. */
  readonly sequential_ms: number;
  /** Wave by wave; each takes as long as its longest action. */
  readonly waves_ms: number;
  /** The longest path through dependencies and barriers: the lower bound of every order. */
  readonly critical_path_ms: number;
  /** `sequential_ms / critical_path_ms`, to two digits; 1 for an empty plan. */
  readonly speedup: number;
}

/** A sync action that blocks later ones: they start in wave `wave` or later. */
export interface PlanBarrier {
  readonly id: string;
  /** Index of the wave with the sync action, 0-based. */
  readonly wave: number;
  readonly holds: readonly string[];
}

export interface PlanReport {
  /** In document order. */
  readonly actions: readonly PlannedAction[];
  readonly byType: Readonly<Partial<Record<ActionType, number>>>;
  readonly byMode: Readonly<Partial<Record<ActionMode, number>>>;
  /** Ids by wave, in document order within a wave. */
  readonly waves: readonly (readonly string[])[];
  readonly barriers: readonly PlanBarrier[];
  readonly estimates: PlanEstimates;
  /** Ids along the longest path. */
  readonly criticalPath: readonly string[];
  /** Earliest start of each action in milliseconds with unlimited slots, in document order. */
  readonly startsMs: readonly number[];
  /** `to` depends on `from`. Barriers are not included. */
  readonly edges: readonly { readonly from: string; readonly to: string }[];
}

/** Counts, waves and estimates of any set of actions in document order, also of one with cycles: see `inOrder`. */
export function buildPlan(actions: readonly PlannedAction[]): PlanReport {
  const nodes = actions.map((action): PlanNode => ({
    action,
    dependencies: [],
    barriers: [],
    level: 0,
    startMs: 0,
    before: null,
  }));
  const byId = new Map(nodes.map((node) => [node.action.id, node]));
  for (const node of nodes) {
    const { dependsOn, dependsOnRejected, heldBy } = node.action;
    const rejected = new Set(dependsOnRejected);
    node.dependencies = known(
      byId,
      node,
      dependsOn.filter((id) => !rejected.has(id)),
    );
    node.barriers = known(byId, node, heldBy ?? []);
  }
  for (const node of inOrder(nodes)) {
    for (const earlier of predecessors(node)) {
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
    barriers: barriersOf(nodes),
    estimates: {
      sequential_ms: sequential,
      waves_ms: sum(waves.map((wave) => Math.max(...wave.map(({ action }) => action.estimateMs)))),
      critical_path_ms: criticalMs,
      speedup: criticalMs === 0 ? 1 : Math.round((100 * sequential) / criticalMs) / 100,
    },
    criticalPath: pathTo(last),
    startsMs: nodes.map(({ startMs }) => startMs),
    edges: nodes.flatMap(({ action: { id }, dependencies }) =>
      dependencies.map((dependency) => ({ from: dependency.action.id, to: id })),
    ),
  };
}

interface PlanNode {
  readonly action: PlannedAction;
  dependencies: readonly PlanNode[];
  barriers: readonly PlanNode[];
  level: number;
  startMs: number;
  /** The predecessor that ends last. */
  before: PlanNode | null;
}

const predecessors = ({ dependencies, barriers }: PlanNode): readonly PlanNode[] => [...dependencies, ...barriers];
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

/**
 * Topological order. Where there are cycles, their edges are cut until none is left: first barriers, then dependencies
 * on actions that are declared later. The scheduler accepts such a dependency only for an action that had settled
 * before it could wait (S3), so nothing waits along the edges that are cut.
 */
function inOrder(nodes: readonly PlanNode[]): PlanNode[] {
  const first = sorted(nodes);
  if (first.length === nodes.length) return first;
  const placed = new Set(first);
  for (const node of nodes) {
    if (!placed.has(node)) node.barriers = node.barriers.filter((sync) => placed.has(sync));
  }
  const second = sorted(nodes);
  if (second.length === nodes.length) return second;
  const before = new Set(second);
  for (const node of nodes) {
    if (!before.has(node)) node.dependencies = node.dependencies.filter((other) => before.has(other));
    before.add(node);
  }
  return sorted(nodes);
}

/** As many as can be ordered: those on a cycle, and those that depend on one, are missing. */
function sorted(nodes: readonly PlanNode[]): PlanNode[] {
  interface Entry {
    readonly node: PlanNode;
    open: number;
    readonly after: Entry[];
  }
  const entries = new Map(nodes.map((node): [PlanNode, Entry] => [node, { node, open: 0, after: [] }]));
  for (const entry of entries.values()) {
    for (const earlier of predecessors(entry.node)) {
      entry.open += 1;
      entries.get(earlier)?.after.push(entry);
    }
  }
  const order = [...entries.values()].filter(({ open }) => open === 0);
  for (const { after } of order) {
    for (const next of after) {
      next.open -= 1;
      if (next.open === 0) order.push(next);
    }
  }
  return order.map(({ node }) => node);
}

function wavesOf(nodes: readonly PlanNode[]): PlanNode[][] {
  const waves: PlanNode[][] = [];
  for (const node of nodes) {
    while (waves.length <= node.level) waves.push([]);
    waves[node.level]?.push(node);
  }
  return waves;
}

function barriersOf(nodes: readonly PlanNode[]): PlanBarrier[] {
  const held = new Map<PlanNode, string[]>(nodes.map((node) => [node, []]));
  for (const node of nodes) {
    for (const sync of node.barriers) held.get(sync)?.push(node.action.id);
  }
  return [...held]
    .filter(([, holds]) => holds.length > 0)
    .map(([node, holds]) => ({ id: node.action.id, wave: node.level, holds }));
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

type IsShown = (action: ActionDeclaration) => boolean;

/**
 * The plan of the actions that a generation of a run declared, without rejected ones.
 *
 * @param isShown actions that are left out; what depends on them depends on their dependencies
 */
export function planOf(state: RunState, iteration: number, isShown: IsShown = () => true): PlanReport {
  return buildPlan(plannedActions(state, iteration, isShown));
}

/** The accepted actions of one generation, as the scheduler understood them. */
function plannedActions(state: RunState, iteration: number, isShown: IsShown): PlannedAction[] {
  const accepted = state.nodes.filter((node) => node.iteration === iteration && node.queued);
  const syncs = accepted.filter(({ declaration }) => declaration.mode === 'sync');
  return accepted.filter(({ declaration }) => isShown(declaration)).map((node) => planned(node, syncs, isShown));
}

/** Dependencies, with those of hidden ones in their place. */
function shownDependencies(node: ActionNode, isShown: IsShown): readonly ActionNode[] {
  const found = new Set<ActionNode>();
  const passed = new Set<ActionNode>();
  const open = [...node.dependencies];
  for (let next = open.shift(); next !== undefined; next = open.shift()) {
    if (isShown(next.declaration)) found.add(next);
    else if (!passed.has(next)) {
      passed.add(next);
      open.push(...next.dependencies);
    }
  }
  return [...found];
}

function planned(node: ActionNode, syncs: readonly ActionNode[], isShown: IsShown): PlannedAction {
  const { id, declaration, policy, iteration, mode } = node;
  const dependencies = shownDependencies(node, isShown);
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

/** The parser's result for one `<action>`, in document order. */
export type PlanEntry =
  | { readonly action: ActionDeclaration; readonly policy: ActionPolicy }
  | { readonly rejection: ActionRejection };

export interface StaticPlan {
  readonly report: PlanReport;
  /** Actions rejected by the parser or the scheduler. */
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

/** The plan of one generation that is not executed: the same decisions as in a run, without effects. */
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
