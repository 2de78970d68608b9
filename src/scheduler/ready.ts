/**
 * The ready queue (S5): selects which of the ready actions start now.
 *
 * Owns the lanes, the limits per target and type, the concurrency of overloaded targets, and the path lengths. Does not
 * own the decision that an action is ready, or the start itself.
 *
 * Invariants:
 *  1. A ready action is in exactly one heap: its lane, or the parking heap of a limit that is full.
 *  2. An action is parked only while running actions and those in a lane fill the limit.
 *  3. A heap is ordered by priority, then longest remaining path, then document order. So the order of starts does not
 *     depend on the heap's history.
 *  4. Path lengths are updated only before a selection. Each update is linear in the part of the graph that changed.
 *  5. `1 <= max <= ceiling` for every limit. Only overloads lower `max`, and only successes raise it.
 */
import { actionSpec } from '../domain/action-types.ts';
import type { ActionDeclaration } from '../domain/action.ts';
import { push as pushInto, remove, siftUp } from '../domain/heap.ts';
import { limits as bounds } from '../domain/limits.ts';
import { newLimit } from './state.ts';
import type { ActionNode, Limit, LimitQueue, RunState } from './state.ts';

/** Makes an action a candidate for starting. */
export function enqueue(state: RunState, node: ActionNode): void {
  const full = fullLimitOf(node);
  if (full !== null) return push(queueOf(full, node).parked, node);
  // The lane may contain more actions of a target than its limit allows. The most urgent one starts; the others are
  // parked when they are selected and the limit is full.
  for (const limit of node.limits) queueOf(limit, node).inLane += 1;
  push(laneOf(state, node), node);
}

/** Removes a ready action: it was cancelled, skipped, or changes its lane. */
export function dequeue(state: RunState, node: ActionNode): void {
  const { heap, limits } = node;
  if (heap === null) return;
  removeFrom(heap, node);
  for (const limit of limits) if (queueOf(limit, node).parked === heap) return;
  for (const limit of limits) queueOf(limit, node).inLane -= 1;
  for (const limit of limits) refill(state, limit);
}

/**
 * Removes the next action to start from its heap and counts it against its limits and the slots. Null if nothing may
 * start now.
 */
export function takeNext(state: RunState): ActionNode | null {
  for (;;) {
    const node = best(state);
    if (node === null) return null;
    if (node.heap !== null) removeFrom(node.heap, node);
    for (const limit of node.limits) queueOf(limit, node).inLane -= 1;
    const full = fullLimitOf(node);
    if (full !== null) {
      push(queueOf(full, node).parked, node);
      // It left room in the lane for others of its type or target.
      for (const limit of node.limits) if (limit !== full) refill(state, limit);
      continue;
    }
    for (const limit of node.limits) limit.running += 1;
    if (node.limits.length > 0) node.cutsAtStart = paceOf(node)?.cuts ?? 0;
    if (needsSlot(node)) state.slotsUsed += 1;
    return node;
  }
}

/** Reverts the counting of `takeNext`. */
export function release(state: RunState, node: ActionNode): void {
  if (needsSlot(node)) state.slotsUsed -= 1;
  for (const limit of node.limits) limit.running -= 1;
  for (const limit of node.limits) refill(state, limit);
}

function best(state: RunState): ActionNode | null {
  const { lanes, policy } = state;
  const free = lanes.free[0];
  if (free !== undefined) return free;
  const slots = policy.maxParallelActions - state.slotsUsed;
  if (slots <= 0) return null;
  if (lanes.slot.length + lanes.background.length > slots) refreshPaths(state);
  const awaited = lanes.slot[0];
  const background = lanes.background[0];
  if (background === undefined) return awaited ?? null;
  // While the run is live, fire_and_forget actions leave the last free slot to awaited work (S5).
  const mayTake = slots > 1 || policy.maxParallelActions === 1 || state.phase === 'ended';
  if (!mayTake) return awaited ?? null;
  return awaited !== undefined && before(awaited, background) ? awaited : background;
}

export function needsSlot(node: ActionNode): boolean {
  return actionSpec(node.declaration.type).takesSlot;
}

function laneOf({ lanes }: RunState, node: ActionNode): ActionNode[] {
  if (!needsSlot(node)) return lanes.free;
  return node.mode === 'fire_and_forget' ? lanes.background : lanes.slot;
}

function queueOf(limit: Limit, node: ActionNode): LimitQueue {
  return node.mode === 'fire_and_forget' ? limit.background : limit.awaited;
}

/** The first of its limits that is full, or null. */
function fullLimitOf({ limits }: ActionNode): Limit | null {
  for (const limit of limits) if (limit.running >= limit.max) return limit;
  return null;
}

function refill(state: RunState, limit: Limit): void {
  const { awaited, background } = limit;
  if (awaited.parked.length + background.parked.length === 0 || limit.running >= limit.max) return;
  refreshPaths(state);
  for (const queue of [awaited, background]) {
    while (limit.running + queue.inLane < limit.max) {
      const node = queue.parked[0];
      if (node === undefined) break;
      removeFrom(queue.parked, node);
      enqueue(state, node);
    }
  }
}

// --- limits and pace ---------------------------------------------------------------------------

/** Assigns the limits that apply to a newly admitted action (S5). */
export function limit(state: RunState, node: ActionNode): void {
  const { declaration, policy } = node;
  const { type } = declaration;
  const perType = state.policy.maxParallelByType?.[type] ?? null;
  if (policy.concurrency === null && perType === null && state.limits.size === 0) return;
  const found = new Set<Limit>();
  if (policy.concurrency !== null) found.add(limitNamed(state, targetOf(declaration), policy.concurrency));
  if (perType !== null) found.add(limitNamed(state, type, perType));
  const pace = state.limits.get(paceNameOf(declaration));
  if (pace !== undefined) found.add(pace);
  if (found.size > 0) node.limits = [...found];
}

function limitNamed(state: RunState, name: string, allowed: number): Limit {
  const ceiling = Math.max(1, allowed);
  const known = state.limits.get(name);
  if (known === undefined) {
    const fresh = newLimit(name, ceiling);
    state.limits.set(name, fresh);
    return fresh;
  }
  if (known.ceiling !== ceiling) {
    known.max = known.cuts === 0 ? ceiling : Math.min(known.max, ceiling);
    known.ceiling = ceiling;
  }
  return known;
}

/**
 * A running attempt was rejected because its target is overloaded: halves the concurrency of the target (S5). Attempts
 * that started before the last reduction do not count: five rejections of one burst are one overload.
 *
 * @returns the limit that was lowered, or null if nothing changed
 */
export function slowDown(state: RunState, node: ActionNode): Limit | null {
  const pace = paceOf(node) ?? newPace(state, node);
  if (node.cutsAtStart !== pace.cuts) return null;
  pace.cuts += 1;
  pace.successes = 0;
  const width = Math.max(1, Math.floor(Math.min(pace.max, pace.running) / 2));
  if (width === pace.max) return null;
  pace.max = width;
  return pace;
}

/** An attempt succeeded: after as many successes as `max`, a reduced limit rises by one. */
export function speedUp(state: RunState, node: ActionNode): void {
  if (node.limits.length === 0) return;
  const pace = paceOf(node);
  if (pace === null || pace.max >= pace.ceiling || node.cutsAtStart !== pace.cuts) return;
  pace.successes += 1;
  if (pace.successes < pace.max) return;
  pace.max += 1;
  pace.successes = 0;
  refill(state, pace);
}

/** The limit that an overload of this action reduces (S5). */
function paceNameOf(action: Pick<ActionDeclaration, 'type' | 'name'>): string {
  return actionSpec(action.type).pacedBy === 'target' ? targetOf(action) : action.type;
}

function targetOf({ type, name }: Pick<ActionDeclaration, 'type' | 'name'>): string {
  return `${type}/${name}`;
}

function paceOf({ limits, declaration }: ActionNode): Limit | null {
  const name = paceNameOf(declaration);
  for (const limit of limits) if (limit.name === name) return limit;
  return null;
}

/** The first overload of a target without a limit: creates one and counts its current actions. */
function newPace(state: RunState, node: ActionNode): Limit {
  const name = paceNameOf(node.declaration);
  const ceiling = needsSlot(node) ? state.policy.maxParallelActions : bounds.actionsPerGeneration;
  const pace = limitNamed(state, name, ceiling);
  for (const other of state.nodes) {
    if (!other.admitted || other.stage === 'settled' || paceNameOf(other.declaration) !== name) continue;
    other.limits = [...other.limits, pace];
    if (other.stage === 'running') pace.running += 1;
    const { heap } = other;
    if (heap !== null && heap === laneOf(state, other)) queueOf(pace, other).inLane += 1;
  }
  return pace;
}

// --- remaining paths -------------------------------------------------------------------------

/** Records that an action has new dependencies, whose paths now include it. */
export function noteEdges(state: RunState, node: ActionNode): void {
  if (state.dirty.at(-1) !== node) state.dirty.push(node);
}

/**
 * Updates the paths of everything that the recorded actions wait for: depth first along the dependencies, then in
 * reverse postorder, so that every action is final before its value is used.
 */
function refreshPaths(state: RunState): void {
  const { dirty } = state;
  if (dirty.length === 0) return;
  state.dirty = [];
  const order = postorder(state, dirty);
  for (const node of order.reverse()) {
    for (const dependency of node.dependencies) {
      const path = dependency.policy.estimateMs + node.pathMs;
      if (path <= dependency.pathMs) continue;
      dependency.pathMs = path;
      if (dependency.heap !== null) siftUp(dependency.heap, dependency, dependency.heapAt, before);
    }
  }
}

function postorder(state: RunState, roots: readonly ActionNode[]): ActionNode[] {
  const mark = ++state.mark;
  const order: ActionNode[] = [];
  const stack: ActionNode[] = [];
  const cursors: number[] = [];
  for (const root of roots) {
    if (root.mark === mark || root.stage === 'settled') continue;
    root.mark = mark;
    stack.push(root);
    cursors.push(0);
    for (let node = stack.at(-1); node !== undefined; node = stack.at(-1)) {
      const cursor = cursors[cursors.length - 1] ?? 0;
      const dependency = node.dependencies[cursor];
      if (dependency === undefined) {
        order.push(node);
        stack.pop();
        cursors.pop();
        continue;
      }
      cursors[cursors.length - 1] = cursor + 1;
      if (dependency.mark === mark || dependency.stage === 'settled') continue;
      dependency.mark = mark;
      stack.push(dependency);
      cursors.push(0);
    }
  }
  return order;
}

// --- heap --------------------------------------------------------------------------------------

/** Whether `a` goes first (S5). */
export function before(a: ActionNode, b: ActionNode): boolean {
  if (a.priority !== b.priority) return a.priority > b.priority;
  if (a.pathMs !== b.pathMs) return a.pathMs > b.pathMs;
  return a.index < b.index;
}

function push(heap: ActionNode[], node: ActionNode): void {
  node.heap = heap;
  pushInto(heap, node, before);
}

function removeFrom(heap: ActionNode[], node: ActionNode): void {
  node.heap = null;
  remove(heap, node, before);
}
