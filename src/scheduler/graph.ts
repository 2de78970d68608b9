/**
 * The graph of a run: the meaning of names, the dependencies, and the detection of cycles.
 *
 * Owns the name tables and the sync barriers of a generation. Does not settle anything: it answers questions and links
 * nodes; its callers decide what follows.
 *
 * Invariants:
 *  1. Dependencies and barriers together never form a cycle: a dependency that would close one is rejected (S3), a
 *     barrier that would close one is lifted (S4).
 *  2. Only forward bindings (to a `depends_on` name that is declared later) can close a cycle, so only these are
 *     searched. All other edges point backwards.
 *  3. A sync action blocks exactly the later actions of its generation that have no `depends_on` field and that it
 *     does not wait for itself.
 */
import { limits } from '../domain/limits.ts';
import { noteEdges } from './ready.ts';
import type { ActionNode, Generation, RunState } from './state.ts';

// --- names -----------------------------------------------------------------------------------

/** Registers an action under its id, its output key and the feed that it adds; the newest one wins (P6, P12). */
export function register(state: RunState, node: ActionNode): void {
  state.ids.set(node.id, node);
  const { outputKey } = node.declaration;
  if (outputKey !== null) state.outputKeys.set(outputKey, node);
  const { provides } = node.policy;
  if (provides !== undefined) state.feeds.set(provides, node);
}

/** Registers an accepted action under the name of its target, for `depends_on` by name (S3). */
export function registerName(state: RunState, node: ActionNode): void {
  const { name } = node.declaration;
  const namesakes = state.named.get(name);
  if (namesakes === undefined) state.named.set(name, [node]);
  else namesakes.push(node);
}

/** Resolves a reference: the newest action with this output key, else with this id, else that adds this feed (P12). */
export function producerOf(state: RunState, name: string): ActionNode | null {
  return state.outputKeys.get(name) ?? state.ids.get(name) ?? state.feeds.get(name) ?? null;
}

/**
 * Resolves a `depends_on` name while text is arriving. Null while it is undecided: unknown so far, or an action of an
 * earlier iteration that failed and may be declared again in this generation.
 */
export function dependencyOf(state: RunState, generation: Generation, name: string): ActionNode | null {
  const byId = state.ids.get(name);
  if (byId !== undefined) return byId.iteration === generation.iteration || !hasFailed(byId) ? byId : null;
  const namesakes = state.named.get(name);
  if (namesakes === undefined) return null;
  const latest = namesakes.at(-1);
  if (latest === undefined) return null;
  if (latest.iteration === generation.iteration) {
    return namesakes.at(-2)?.iteration === generation.iteration ? null : latest;
  }
  return namesakes.length === 1 && !hasFailed(latest) ? latest : null;
}

/** Resolves a name at the end of the generation, when nothing more can be declared; null if unknown. */
export function dependencyAtEnd(state: RunState, node: ActionNode, name: string): ActionNode | null {
  const byId = state.ids.get(name);
  if (byId !== undefined && byId !== node) return byId;
  const candidates = namesakesOf(state, node, name);
  return candidates.length === 1 ? (candidates[0] ?? null) : null;
}

/** Other actions with this target name: those of this generation, else those of earlier iterations. */
function namesakesOf(state: RunState, node: ActionNode, name: string): ActionNode[] {
  const namesakes = (state.named.get(name) ?? []).filter((namesake) => namesake !== node);
  const here = namesakes.filter((namesake) => namesake.iteration === node.iteration);
  return here.length > 0 ? here : namesakes;
}

function hasFailed(node: ActionNode): boolean {
  return node.stage === 'settled' && !node.satisfied;
}

const IDS_SHOWN = 12;

/** The message of an `unknown_dependency` rejection. */
export function unknownDependency(state: RunState, node: ActionNode, names: readonly string[]): string {
  const ambiguous = names.every((name) => namesakesOf(state, node, name).length > 1);
  const what =
    names
      .slice(0, IDS_SHOWN)
      .map((name) => `"${name.slice(0, limits.excerptChars)}"`)
      .join(', ') + (names.length > IDS_SHOWN ? ` and ${names.length - IDS_SHOWN} more` : '');
  const known: string[] = [];
  for (const [id, candidate] of state.ids) if (candidate !== node) known.push(id);
  const shown = known.slice(-IDS_SHOWN).join(', ');
  const more = known.length > IDS_SHOWN ? ` and ${known.length - IDS_SHOWN} more` : '';
  const list = known.length === 0 ? 'none' : shown + more;
  return ambiguous
    ? `Action "${node.id}" depends on ${what}, which is the name of several actions: use an id (known: ${list})`
    : `Action "${node.id}" depends on unknown ${names.length === 1 ? 'id' : 'ids'} ${what} (known: ${list})`;
}

// --- edges -------------------------------------------------------------------------------------

/**
 * Makes `node` wait for one of its `dependencies`. A settled dependency is counted at once.
 */
export function link(state: RunState, node: ActionNode, dependency: ActionNode): void {
  if (dependency.stage === 'settled') {
    countSettled(node, dependency);
    return;
  }
  // The empty list is shared by all nodes.
  if (dependency.dependents.length === 0) dependency.dependents = [node];
  else dependency.dependents.push(node);
  node.unmet += 1;
  noteEdges(state, node);
}

/** Updates the counters of a waiting action for a settled dependency. */
export function countSettled(node: ActionNode, dependency: ActionNode): void {
  if (!dependency.satisfied) node.doomedBy ??= dependency;
  else if (dependency.settlement?.status === 'completed') node.successes += 1;
  else node.nulls += 1;
}

/**
 * The dependency path from one of `starts` to one of `goals`, both included, or null. Settled actions wait for nothing
 * and are skipped.
 */
export function pathBetween(
  state: RunState,
  starts: readonly ActionNode[],
  goals: readonly ActionNode[],
): readonly ActionNode[] | null {
  const wanted = new Set(goals);
  const mark = ++state.mark;
  const cameFrom = new Map<ActionNode, ActionNode | null>();
  const queue: ActionNode[] = [];
  for (const start of starts) {
    if (start.mark === mark || start.stage === 'settled') continue;
    start.mark = mark;
    cameFrom.set(start, null);
    queue.push(start);
  }
  for (const node of queue) {
    if (wanted.has(node)) {
      const path: ActionNode[] = [];
      for (let at: ActionNode | null | undefined = node; at != null; at = cameFrom.get(at)) path.push(at);
      return path.reverse();
    }
    for (const dependency of node.dependencies) {
      if (dependency.mark === mark || dependency.stage === 'settled') continue;
      dependency.mark = mark;
      cameFrom.set(dependency, node);
      queue.push(dependency);
    }
  }
  return null;
}

const PATH_SHOWN = 16;

/** The message of a `dependency_cycle` rejection: the action that closes the cycle, and its path. */
export function dependencyCycle(node: ActionNode, path: readonly ActionNode[]): string {
  const ids = path.map(({ id }) => id);
  const shown = ids.length > PATH_SHOWN ? [...ids.slice(0, PATH_SHOWN - 2), '…', ...ids.slice(-1)] : ids;
  return `Action "${node.id}" closes a dependency cycle: ${[node.id, ...shown, node.id].join(' -> ')}`;
}

// --- sync barriers (S4) ----------------------------------------------------------------------------

/** Places a new action before or behind the generation's barriers. */
export function placeBehindBarriers(generation: Generation, node: ActionNode): void {
  if (node.declaration.dependsOn === null && firstUnsettledSync(generation) !== null) {
    node.barred = 'line';
    generation.line.push(node);
  }
  if (node.declaration.mode === 'sync') generation.syncs.push(node);
}

function firstUnsettledSync(generation: Generation): ActionNode | null {
  const { syncs } = generation;
  for (;;) {
    const sync = syncs[generation.syncFront];
    if (sync === undefined) return null;
    if (sync.stage !== 'settled') return sync;
    generation.syncFront += 1;
  }
}

/** A sync action has settled. @returns the actions that nothing blocks any more */
export function liftBarrier(generation: Generation, sync: ActionNode): ActionNode[] {
  const released: ActionNode[] = [];
  const first = firstUnsettledSync(generation);
  const { line } = generation;
  for (;;) {
    const node = line[generation.lineFront];
    if (node === undefined || (first !== null && node.index > first.index)) break;
    generation.lineFront += 1;
    if (node.barred !== 'line') continue;
    node.barred = 'open';
    released.push(node);
  }
  for (const node of sync.holds) if (!node.exempt.includes(sync)) dropHold(node, released);
  return released;
}

function dropHold(node: ActionNode, released: ActionNode[]): void {
  if (node.barred !== 'listed') return;
  node.holdCount -= 1;
  if (node.holdCount > 0) return;
  node.barred = 'open';
  released.push(node);
}

/**
 * Lifts the barriers that a forward binding turns into cycles. `waiters` now wait for `target`, so a sync action that
 * waits for one of them, through dependencies or barriers, must not block anything that `target` needs.
 *
 * @returns the actions that nothing blocks any more
 */
export function exemptFromBarriers(
  state: RunState,
  generation: Generation,
  waiters: readonly ActionNode[],
  target: ActionNode,
): ActionNode[] {
  const needed = closure(state, target).filter((node) => node.barred !== 'open');
  if (needed.length === 0) return [];
  const waiting = waitingFor(generation, waiters);
  const released: ActionNode[] = [];
  for (const node of needed) {
    for (const sync of generation.syncs) {
      if (sync.index >= node.index) break;
      if (sync.stage !== 'settled' && waiting.has(sync)) exempt(generation, node, sync, released);
    }
  }
  return released;
}

function exempt(generation: Generation, node: ActionNode, sync: ActionNode, released: ActionNode[]): void {
  if (node.exempt.includes(sync)) return;
  if (node.barred === 'line') {
    node.barred = 'listed';
    generation.listed.push(node);
    for (const holder of generation.syncs) {
      if (holder.index >= node.index) break;
      if (holder.stage === 'settled') continue;
      holder.holds = [...holder.holds, node];
      node.holdCount += 1;
    }
  }
  node.exempt = [...node.exempt, sync];
  dropHold(node, released);
}

/** An action and all unsettled actions that it depends on, directly or not. */
function closure(state: RunState, start: ActionNode): ActionNode[] {
  const mark = ++state.mark;
  start.mark = mark;
  const found = [start];
  for (const node of found) {
    for (const dependency of node.dependencies) {
      if (dependency.mark === mark || dependency.stage === 'settled') continue;
      dependency.mark = mark;
      found.push(dependency);
    }
  }
  return found;
}

/** Everything that waits for one of `roots`, through dependencies or barriers, including the roots. */
function waitingFor(generation: Generation, roots: readonly ActionNode[]): Set<ActionNode> {
  const found = new Set<ActionNode>(roots);
  // The actions behind a sync action are the same for all earlier sync actions: walked once, backwards.
  let walkedFrom = generation.line.length;
  for (const node of found) {
    for (const dependent of node.dependents) if (dependent.stage === 'waiting') found.add(dependent);
    if (node.declaration.mode !== 'sync' || node.iteration !== generation.iteration) continue;
    while (walkedFrom > generation.lineFront) {
      const held = generation.line[walkedFrom - 1];
      if (held === undefined || held.index <= node.index) break;
      walkedFrom -= 1;
      if (held.barred === 'line') found.add(held);
    }
    for (const held of generation.listed) {
      if (held.barred === 'listed' && held.index > node.index && !held.exempt.includes(node)) found.add(held);
    }
  }
  return found;
}
