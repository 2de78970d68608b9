/**
 * The ready queue (S5): which of the actions that could start, start now.
 *
 * Owns the lanes, the limits per target and the path lengths. Does not own the decision that an
 * action is ready, nor what starting means.
 *
 * Invariants:
 *  1. A ready action is in exactly one heap: its lane, or the parking heap of its full target.
 *  2. Something is parked only while its target's running actions and those in a lane fill its limit.
 *  3. A heap is ordered by priority, then longest remaining path, then document order; so the order
 *     of starts does not depend on the heap's history.
 *  4. Path lengths are brought up to date only when a choice has to be made; each refresh is linear
 *     in the part of the graph that changed.
 */
import type { ActionNode, Limit, LimitQueue, RunState } from './state.ts';

/** Makes an action a candidate for starting. */
export function enqueue(state: RunState, node: ActionNode): void {
  const { limit } = node;
  if (limit !== null) {
    const queue = queueOf(limit, node);
    if (limit.running >= limit.max) return push(queue.parked, node);
    // The lane may hold more of a target than it has room for: the most urgent one wins, and what
    // finds its target full when its turn comes is parked again.
    queue.inLane += 1;
  }
  push(laneOf(state, node), node);
}

/** Takes a ready action out again: it was cancelled, skipped, or changes its lane. */
export function dequeue(state: RunState, node: ActionNode): void {
  const { heap, limit } = node;
  if (heap === null) return;
  removeFrom(heap, node);
  if (limit === null) return;
  const queue = queueOf(limit, node);
  if (heap === queue.parked) return;
  queue.inLane -= 1;
  refill(state, limit);
}

/**
 * The next action to start, already taken out and counted against its target and the slots; null
 * when nothing may start now.
 */
export function takeNext(state: RunState): ActionNode | null {
  for (;;) {
    const node = best(state);
    if (node === null) return null;
    const { limit } = node;
    if (node.heap !== null) removeFrom(node.heap, node);
    if (limit !== null) {
      const queue = queueOf(limit, node);
      queue.inLane -= 1;
      if (limit.running >= limit.max) {
        push(queue.parked, node);
        continue;
      }
      limit.running += 1;
    }
    if (needsSlot(node)) state.slotsUsed += 1;
    return node;
  }
}

/** Gives back what `takeNext` counted. */
export function release(state: RunState, node: ActionNode): void {
  if (needsSlot(node)) state.slotsUsed -= 1;
  if (node.limit !== null) {
    node.limit.running -= 1;
    refill(state, node.limit);
  }
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
  // While the run lives, fire_and_forget leaves the last free slot to work that is waited for (S5).
  const mayTake = slots > 1 || policy.maxParallelActions === 1 || state.phase === 'ended';
  if (!mayTake) return awaited ?? null;
  return awaited !== undefined && before(awaited, background) ? awaited : background;
}

/** Workflow and agent actions are themselves schedulers of slots (S5). */
export function needsSlot(node: ActionNode): boolean {
  const { type } = node.declaration;
  return type !== 'agent' && type !== 'workflow';
}

function laneOf({ lanes }: RunState, node: ActionNode): ActionNode[] {
  if (!needsSlot(node)) return lanes.free;
  return node.mode === 'fire_and_forget' ? lanes.background : lanes.slot;
}

function queueOf(limit: Limit, node: ActionNode): LimitQueue {
  return node.mode === 'fire_and_forget' ? limit.background : limit.awaited;
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
      queue.inLane += 1;
      push(laneOf(state, node), node);
    }
  }
}

// --- remaining paths -------------------------------------------------------------------------

/** Notes that an action has new dependencies, whose paths now lead on to it. */
export function noteEdges(state: RunState, node: ActionNode): void {
  if (state.dirty.at(-1) !== node) state.dirty.push(node);
}

/**
 * Lengthens the paths of everything that the noted actions wait for: depth first along the
 * dependencies, then in reverse postorder, so that every action is final before it is passed on.
 */
function refreshPaths(state: RunState): void {
  const { dirty } = state;
  if (dirty.length === 0) return;
  state.dirty = [];
  const order = postorder(state, dirty);
  for (let at = order.length - 1; at >= 0; at -= 1) {
    const node = order[at];
    if (node === undefined) continue;
    for (const dependency of node.dependencies) {
      if (dependency.stage === 'settled') continue;
      const path = dependency.traits.estimateMs + node.pathMs;
      if (path <= dependency.pathMs) continue;
      dependency.pathMs = path;
      if (dependency.heap !== null) siftUp(dependency.heap, dependency, dependency.heapAt);
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
  const priority = a.declaration.priority - b.declaration.priority;
  if (priority !== 0) return priority > 0;
  if (a.pathMs !== b.pathMs) return a.pathMs > b.pathMs;
  return a.index < b.index;
}

function push(heap: ActionNode[], node: ActionNode): void {
  node.heap = heap;
  heap.push(node);
  siftUp(heap, node, heap.length - 1);
}

function removeFrom(heap: ActionNode[], node: ActionNode): void {
  const at = node.heapAt;
  const last = heap.pop();
  node.heap = null;
  node.heapAt = -1;
  if (last === undefined || last === node) return;
  siftDown(heap, last, at);
  if (last.heapAt === at) siftUp(heap, last, at);
}

function siftUp(heap: ActionNode[], node: ActionNode, start: number): void {
  let at = start;
  while (at > 0) {
    const parentAt = (at - 1) >> 1;
    const parent = heap[parentAt];
    if (parent === undefined || before(parent, node)) break;
    heap[at] = parent;
    parent.heapAt = at;
    at = parentAt;
  }
  heap[at] = node;
  node.heapAt = at;
}

function siftDown(heap: ActionNode[], node: ActionNode, start: number): void {
  let at = start;
  for (;;) {
    let childAt = 2 * at + 1;
    let child = heap[childAt];
    if (child === undefined) break;
    const right = heap[childAt + 1];
    if (right !== undefined && before(right, child)) {
      child = right;
      childAt += 1;
    }
    if (before(node, child)) break;
    heap[at] = child;
    child.heapAt = at;
    at = childAt;
  }
  heap[at] = node;
  node.heapAt = at;
}
