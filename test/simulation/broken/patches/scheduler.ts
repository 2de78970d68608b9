/** Mistakes in decisions: order, limits, and the end of a generation. */
import type { Patch } from '../patch.ts';

const READY = 'src/scheduler/ready.ts';
const GRAPH = 'src/scheduler/graph.ts';

export const SCHEDULER_PATCHES: readonly Patch[] = [
  {
    name: 'a failed dependency counts as satisfied',
    file: 'src/scheduler/settle.ts',
    find: `return node.declaration.onError === 'skip';`,
    replace: `return node.declaration.onError !== 'retry';`,
    invariant: 'order',
  },
  {
    name: 'a dependency that was skipped counts as satisfied',
    file: 'src/scheduler/settle.ts',
    find: `return settlement.reason === 'condition';`,
    replace: `return true;`,
    invariant: 'order',
  },
  {
    name: 'one of several dependencies is enough',
    file: 'src/scheduler/prepare.ts',
    find: `if (node.unmet > 0 && (waitForAll || node.successes === 0)) return;`,
    replace: `if (node.unmet > 0 && node.successes === 0) return;`,
    invariant: 'order',
  },
  {
    name: 'sync actions hold nothing back',
    file: GRAPH,
    find: `if (node.declaration.dependsOn === null && firstUnsettledSync(generation) !== null) {`,
    replace: `if (node.declaration.dependsOn === null && node.declaration.mode === 'sync' && firstUnsettledSync(generation) !== null) {`,
    invariant: 'order',
  },
  {
    name: 'the first sync action that ends lifts all barriers',
    file: GRAPH,
    find: `if (node === undefined || (first !== null && node.index > first.index)) break;`,
    replace: `if (node === undefined) break;`,
    invariant: 'order',
  },
  {
    name: 'one slot too many',
    file: READY,
    find: `const slots = policy.maxParallelActions - state.slotsUsed;`,
    replace: `const slots = policy.maxParallelActions - state.slotsUsed + 1;`,
    invariant: 'within limits',
  },
  {
    name: 'a slot is not released after a failed attempt',
    file: 'src/scheduler/dispatch.ts',
    find: `  releaseReservation(state, node);\n  release(state, node);\n  setStage(state, node, 'retrying');`,
    replace: `  releaseReservation(state, node);\n  setStage(state, node, 'retrying');`,
    invariant: 'everything ends',
  },
  {
    name: 'the concurrency of a target is off by one',
    file: READY,
    find: `if (limit.running >= limit.max) return limit;`,
    replace: `if (limit.running > limit.max) return limit;`,
    invariant: 'within limits',
  },
  {
    name: 'one action too many',
    file: 'src/scheduler/declare.ts',
    find: `if (taken >= maxActions) {`,
    replace: `if (taken > maxActions) {`,
    invariant: 'within limits',
  },
  {
    name: 'one iteration too many',
    file: 'src/scheduler/loop.ts',
    find: `if (maxIterations > 0 && iteration > maxIterations) exceed(`,
    replace: `if (maxIterations > 0 && iteration > maxIterations + 1) exceed(`,
    invariant: 'within limits',
  },
  {
    name: 'generations do not count as model calls',
    file: 'src/scheduler/loop.ts',
    find: `if (state.policy.source === 'model') state.modelCalls += 1;`,
    replace: ``,
    invariant: 'within limits',
  },
  {
    name: 'actions of a filtered generation start after its end',
    file: 'src/scheduler/verdict.ts',
    find: `return finish === 'content_filter' || finish === 'error' || finish === 'abort';`,
    replace: `return finish === 'error' || finish === 'abort';`,
    invariant: 'nothing after the end',
  },
  {
    name: 'actions that wait for a generation start when it was cut off at its length',
    file: 'src/scheduler/loop.ts',
    find: `if (finish === 'length') cancel(frame, node, 'generation_length');\n      else if`,
    replace: `if`,
    invariant: 'nothing after the end',
  },
  {
    name: 'references do not count as dependencies',
    file: 'src/scheduler/declare.ts',
    find: `bound.push([name, producer]);\n    dependOn(producer);`,
    replace: `bound.push([name, producer]);`,
    invariant: 'order',
  },
];
