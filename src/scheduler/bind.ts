/** Binds the names of an action that are declared after it (S3, P12), and what follows for fire_and_forget (S4). */
import { dependencyAtEnd, dependencyCycle, exemptFromBarriers, link, pathBetween, unknownDependency } from './graph.ts';
import { consider } from './prepare.ts';
import { dequeue, enqueue } from './ready.ts';
import { isActive, isAsking, queue, settle } from './settle.ts';
import type { ActionNode, Generation } from './state.ts';
import type { StepFrame } from './step-frame.ts';

/** A fire_and_forget action that another action waits for becomes async (S4). */
export function awaited(frame: StepFrame, node: ActionNode): void {
  if (node.mode !== 'fire_and_forget' || !node.admitted) return;
  const { state } = frame;
  const { heap, stage } = node;
  if (heap !== null) dequeue(state, node);
  node.mode = 'async';
  if (stage !== 'settled') {
    state.openBackground -= 1;
    state.open += 1;
    if (isActive(stage)) {
      state.active += 1;
      state.activeBackground -= 1;
    }
    if (isAsking(stage)) state.asking += 1;
  }
  if (heap !== null) enqueue(state, node);
  const message = `Action "${node.id}" is fire_and_forget, but another action or the response needs it: it runs as async`;
  frame.out.push({ type: 'warn', code: 'fire_and_forget_awaited', message, key: node.key });
}

/** Binds everything that waited for the declaration of this id (S3). */
export function bindWaiters(frame: StepFrame, generation: Generation, node: ActionNode): void {
  const waiters = (generation.pending.get(node.id) ?? []).filter(({ stage }) => stage === 'waiting');
  generation.pending.delete(node.id);
  if (waiters.length === 0) return;
  for (const waiter of waiters) bindLate(frame, waiter, node.id, node);
  if (node.stage !== 'settled') {
    for (const freed of exemptFromBarriers(frame.state, generation, waiters, node)) consider(frame, freed);
  }
  for (const waiter of waiters) {
    if (waiter.unresolved.length > 0) continue;
    queue(frame, waiter);
    consider(frame, waiter);
  }
}

function bindLate(frame: StepFrame, waiter: ActionNode, name: string, dependency: ActionNode): void {
  waiter.unresolved = waiter.unresolved.filter((other) => other !== name);
  // A name in `depends_on` may also be used in references, even if it is declared later (P12).
  const { references } = waiter.declaration;
  const { outputKey } = dependency.declaration;
  for (const reference of references) {
    if (reference === outputKey || reference === name || reference === dependency.id) {
      const others = waiter.bound.filter(([other]) => other !== reference);
      waiter.bound = [...others, [reference, dependency]];
    }
  }
  if (waiter.dependencies.includes(dependency)) return;
  awaited(frame, dependency);
  waiter.dependencies = [...waiter.dependencies, dependency];
  link(frame.state, waiter, dependency);
}

/** Nothing more will be declared: binds every open `depends_on` name or rejects it as unknown (S3). */
export function bindRemaining(frame: StepFrame, generation: Generation): void {
  const { state } = frame;
  generation.pending.clear();
  for (const node of generation.nodes) {
    if (node.stage !== 'waiting' || node.unresolved.length === 0) continue;
    const names = node.unresolved;
    const found = new Map<string, ActionNode>();
    for (const name of names) {
      const dependency = dependencyAtEnd(state, node, name);
      if (dependency !== null) found.set(name, dependency);
    }
    const unknown = names.filter((name) => !found.has(name));
    if (unknown.length > 0) {
      const message = unknownDependency(state, node, unknown);
      settle(frame, node, { status: 'rejected', code: 'unknown_dependency', message });
      continue;
    }
    const cycle = pathBetween(state, [...found.values()], [node]);
    if (cycle !== null) {
      const message = dependencyCycle(node, cycle.slice(0, -1));
      settle(frame, node, { status: 'rejected', code: 'dependency_cycle', message });
      continue;
    }
    for (const [name, dependency] of found) {
      bindLate(frame, node, name, dependency);
      if (dependency.stage === 'settled') continue;
      for (const freed of exemptFromBarriers(state, generation, [node], dependency)) consider(frame, freed);
    }
    queue(frame, node);
    consider(frame, node);
  }
}
