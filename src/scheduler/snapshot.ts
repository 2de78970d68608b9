/**
 * Converts a run's state to plain JSON and back (J9). Actions are identified by index and heaps keep their order, so a
 * restored state handles every input as the original would.
 */
import { EngineError } from '../domain/errors.ts';
import type { JsonObject } from '../domain/json.ts';
import { initialState, newGeneration } from './state.ts';
import type { ActionNode, Generation, Limit, LimitQueue, RunState } from './state.ts';

const VERSION = 1;

/** Fields of a node that refer to other nodes, limits or heaps, or copy its declaration. All others are plain data. */
type NodeLinks =
  | 'dependencies'
  | 'dependents'
  | 'doomedBy'
  | 'bound'
  | 'exempt'
  | 'holds'
  | 'limits'
  | 'priority'
  | 'heap'
  | 'mark';

interface StoredNode extends Omit<ActionNode, NodeLinks> {
  readonly dependencies: readonly number[];
  readonly dependents: readonly number[];
  readonly doomedBy: number | null;
  readonly bound: readonly (readonly [string, number])[];
  readonly exempt: readonly number[];
  readonly holds: readonly number[];
  readonly limits: readonly string[];
}

interface StoredGeneration extends Omit<Generation, 'responses' | 'nodes' | 'syncs' | 'line' | 'listed' | 'pending'> {
  readonly responses: readonly { readonly final: boolean | null; readonly refers: readonly number[] }[];
  readonly nodes: readonly number[];
  readonly syncs: readonly number[];
  readonly line: readonly number[];
  readonly listed: readonly number[];
  readonly pending: readonly (readonly [string, readonly number[]])[];
}

type StateLinks =
  | 'nodes'
  | 'byKey'
  | 'ids'
  | 'outputKeys'
  | 'named'
  | 'limits'
  | 'lanes'
  | 'generation'
  | 'dirty'
  | 'mark';
type NamedNode = readonly [string, number];

interface StoredQueue {
  readonly inLane: number;
  readonly parked: readonly number[];
}

interface StoredLimit extends Omit<Limit, 'awaited' | 'background'> {
  readonly awaited: StoredQueue;
  readonly background: StoredQueue;
}

interface StoredState extends Omit<RunState, StateLinks> {
  readonly v: number;
  readonly nodes: readonly StoredNode[];
  readonly ids: readonly NamedNode[];
  readonly outputKeys: readonly NamedNode[];
  readonly named: readonly (readonly [string, readonly number[]])[];
  readonly limits: readonly StoredLimit[];
  /** The lane of actions that need no slot is empty between two steps. */
  readonly lanes: {
    readonly slot: readonly number[];
    readonly background: readonly number[];
  };
  readonly generation: StoredGeneration | null;
  readonly dirty: readonly number[];
}

const indexOf = ({ index }: ActionNode): number => index;
const indexesOf = (nodes: readonly ActionNode[]): readonly number[] => nodes.map(indexOf);

/** A JSON copy that shares nothing with the state that `step` changes. */
export function snapshot(state: RunState): JsonObject {
  const { nodes, byKey: _, ids, outputKeys, named, limits, lanes, generation, dirty, mark: __, ...plain } = state;
  const stored: StoredState = {
    v: VERSION,
    ...plain,
    exceeded: [...plain.exceeded],
    nodes: nodes.map(storeNode),
    ids: [...ids].map(([name, node]) => [name, node.index]),
    outputKeys: [...outputKeys].map(([name, node]) => [name, node.index]),
    named: [...named].map(([name, namesakes]) => [name, indexesOf(namesakes)]),
    limits: [...limits.values()].map((limit) => ({
      ...limit,
      awaited: storeQueue(limit.awaited),
      background: storeQueue(limit.background),
    })),
    lanes: { slot: indexesOf(lanes.slot), background: indexesOf(lanes.background) },
    generation: generation === null ? null : storeGeneration(generation),
    dirty: indexesOf(dirty),
  };
  // Plain JSON; the interfaces only lack the index signature.
  return stored as unknown as JsonObject;
}

function storeQueue({ inLane, parked }: LimitQueue): StoredQueue {
  return { inLane, parked: indexesOf(parked) };
}

function storeNode(node: ActionNode): StoredNode {
  const {
    dependencies,
    dependents,
    doomedBy,
    bound,
    exempt,
    holds,
    limits,
    priority: ___,
    heap: _,
    mark: __,
    ...plain
  } = node;
  return {
    ...plain,
    dependencies: indexesOf(dependencies),
    dependents: indexesOf(dependents),
    doomedBy: doomedBy?.index ?? null,
    bound: bound.map(([name, producer]) => [name, producer.index]),
    exempt: indexesOf(exempt),
    holds: indexesOf(holds),
    limits: limits.map(({ name }) => name),
  };
}

function storeGeneration({ responses, nodes, syncs, line, listed, pending, ...plain }: Generation): StoredGeneration {
  return {
    ...plain,
    responses: responses.map(({ final, refers }) => ({ final, refers: indexesOf(refers) })),
    nodes: indexesOf(nodes),
    syncs: indexesOf(syncs),
    line: indexesOf(line),
    listed: indexesOf(listed),
    pending: [...pending].map(([name, waiters]) => [name, indexesOf(waiters)]),
  };
}

/**
 * Restores the state from a snapshot.
 *
 * @throws EngineError `schema_too_new` for a snapshot in a later format
 */
export function restore(json: JsonObject): RunState {
  // `snapshot` wrote it: the version is checked, and every reference between actions.
  const stored = json as unknown as StoredState;
  if (stored.v !== VERSION) {
    throw new EngineError(
      'schema_too_new',
      `A scheduler snapshot has format ${String(stored.v)}; this version reads ${VERSION}`,
    );
  }
  const { v: _, nodes, ids, outputKeys, named, limits, lanes, generation, dirty, ...plain } = stored;
  const state: RunState = { ...initialState(), ...plain, exceeded: [...plain.exceeded] };
  for (const node of nodes) state.nodes.push(bareNode(node));
  const at = (index: number): ActionNode => {
    const node = state.nodes[index];
    if (node === undefined)
      throw new EngineError('internal', `A scheduler snapshot refers to action ${index}, which it does not contain`);
    return node;
  };
  const all = (indexes: readonly number[]): ActionNode[] => indexes.map(at);
  for (const { awaited, background, ...counts } of limits) {
    const limit: Limit = {
      ...counts,
      awaited: { inLane: awaited.inLane, parked: all(awaited.parked) },
      background: { inLane: background.inLane, parked: all(background.parked) },
    };
    state.limits.set(limit.name, limit);
    restoreHeap(limit.awaited.parked);
    restoreHeap(limit.background.parked);
  }
  for (const [index, node] of state.nodes.entries()) {
    const links = nodes[index];
    if (links === undefined) continue;
    state.byKey.set(node.key, node);
    node.dependencies = all(links.dependencies);
    node.dependents = all(links.dependents);
    node.doomedBy = links.doomedBy === null ? null : at(links.doomedBy);
    node.bound = links.bound.map(([name, producer]) => [name, at(producer)]);
    node.exempt = all(links.exempt);
    node.holds = all(links.holds);
    node.limits = links.limits.flatMap((name) => state.limits.get(name) ?? []);
  }
  for (const [name, index] of ids) state.ids.set(name, at(index));
  for (const [name, index] of outputKeys) state.outputKeys.set(name, at(index));
  for (const [name, namesakes] of named) state.named.set(name, all(namesakes));
  state.lanes.slot.push(...all(lanes.slot));
  state.lanes.background.push(...all(lanes.background));
  restoreHeap(state.lanes.slot);
  restoreHeap(state.lanes.background);
  state.generation = generation === null ? null : restoreGeneration(generation, all);
  state.dirty = all(dirty);
  return state;
}

function bareNode({ ...stored }: StoredNode): ActionNode {
  return {
    ...stored,
    dependencies: [],
    dependents: [],
    doomedBy: null,
    bound: [],
    exempt: [],
    holds: [],
    limits: [],
    priority: stored.declaration.priority,
    heap: null,
    mark: 0,
  };
}

function restoreHeap(heap: ActionNode[]): void {
  for (const [at, node] of heap.entries()) {
    node.heap = heap;
    node.heapAt = at;
  }
}

function restoreGeneration(stored: StoredGeneration, all: (indexes: readonly number[]) => ActionNode[]): Generation {
  return {
    ...newGeneration(stored.iteration, stored.last),
    ...stored,
    responses: stored.responses.map(({ final, refers }) => ({ final, refers: all(refers) })),
    nodes: all(stored.nodes),
    syncs: all(stored.syncs),
    line: all(stored.line),
    listed: all(stored.listed),
    pending: new Map(stored.pending.map(([name, waiters]) => [name, all(waiters)])),
  };
}
