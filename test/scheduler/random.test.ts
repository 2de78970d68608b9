/**
 * Random runs under a virtual clock. `SCHEDULER_RUNS` sets their number (default 250 per property). A
 * failure prints its seed and world; once it is understood, it is kept below as a named case.
 */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { initialState, step } from '../../src/scheduler/step.ts';
import type { ActionNode } from '../../src/scheduler/state.ts';
import { Driver } from '../support/scheduler-kit.ts';
import { simulate } from '../support/scheduler-simulator.ts';
import type { ActionScript, GenerationScript, ItemScript, Trace, World } from '../support/scheduler-simulator.ts';

const numRuns = Number(process.env['SCHEDULER_RUNS'] ?? 250);

const names = ['search', 'fetch', 'sum'] as const;

function rarely<T, N>(value: T, otherwise: N, oneIn = 8): fc.Arbitrary<T | N> {
  return fc.oneof(
    { weight: oneIn - 1, arbitrary: fc.constant(otherwise) },
    { weight: 1, arbitrary: fc.constant(value) },
  );
}

/** An action by its relative position, mostly backwards: -1 is the previous one, 2 the second next. */
const distance = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: -8, max: -1 }) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 4 }) },
);

const dependency = fc.oneof(
  { weight: 50, arbitrary: distance },
  { weight: 4, arbitrary: fc.constantFrom(...names) },
  { weight: 1, arbitrary: fc.constant('nowhere') },
);

const attempt = fc.record({
  latencyMs: fc.integer({ min: 0, max: 3_000 }),
  outcome: fc.oneof(
    { weight: 16, arbitrary: fc.constant('ok' as const) },
    {
      weight: 5,
      arbitrary: fc.constantFrom('fatal', 'retryable', 'overloaded', 'before_dispatch', 'hang', 'late', 'asks'),
    },
  ),
});

const actionSeed = fc.record({
  type: fc.constant('action' as const),
  gapMs: fc.integer({ min: 0, max: 300 }),
  repeatsId: rarely(true, false, 40),
  name: fc.constantFrom(...names),
  kind: fc.constantFrom('tool', 'tool', 'tool', 'llm', 'agent', 'python'),
  mode: fc.constantFrom('async', 'async', 'async', 'sync', 'fire_and_forget'),
  dependsOn: fc.option(fc.array(dependency, { maxLength: 3 }), { freq: 3 }),
  references: fc.array(fc.oneof(distance, fc.constantFrom('x', 'y')), { maxLength: 2 }),
  outputKey: rarely('x', null),
  waitForAll: rarely(false, true),
  onError: fc.constantFrom(null, null, null, 'skip', 'retry'),
  when: rarely('c', null),
  priority: fc.constantFrom(0, 0, 0, 1, -1),
  timeoutMs: fc.constantFrom(null, 500, 2_000),
  effects: fc.constantFrom('pure', 'idempotent', 'unsafe'),
  concurrency: fc.constantFrom(null, null, 1, 2),
  dispatch: rarely('after_generation' as const, 'eager' as const),
  needsApproval: rarely(true, false),
  refused: rarely(true, false, 40),
  estimateMs: fc.integer({ min: 0, max: 10_000 }),
  attempts: fc.array(attempt, { minLength: 1, maxLength: 3 }),
  condition: fc.constantFrom(true, true, false, null),
  approval: fc.constantFrom('yes', 'yes', 'no', 'never', 'unasked'),
  reuse: rarely(true, false),
  policies: rarely(true, false),
  judged: fc.constantFrom('start', 'start', 'ask', 'deny'),
  recalled: fc.constantFrom('outcome', 'nothing', 'nothing', 'refused'),
  spends: fc.constantFrom(0, 0.5, 1),
});

const itemSeed = fc.oneof(
  { weight: 32, arbitrary: actionSeed },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('refusal' as const), gapMs: fc.constant(5) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant('response' as const),
      gapMs: fc.constant(20),
      final: fc.constantFrom(true, false, null),
      refers: fc.array(distance, { maxLength: 2 }),
    }),
  },
);

function planted(seed: ItemSeed, at: number): ItemScript {
  const idAt = (offset: number | string): string =>
    typeof offset === 'string' ? offset : `a${Math.max(0, at + offset)}`;
  switch (seed.type) {
    case 'refusal':
      return { ...seed, id: idAt(0) };
    case 'response':
      return { ...seed, refers: seed.refers.map(idAt) };
    case 'action': {
      const {
        type,
        gapMs,
        repeatsId,
        kind,
        dependsOn,
        references,
        attempts,
        condition,
        approval,
        recalled,
        policies,
        judged,
        spends,
        ...rest
      } = seed;
      const { effects, concurrency, dispatch, needsApproval, refused, estimateMs, reuse, ...fields } = rest;
      const action: ActionScript = {
        fields: {
          ...fields,
          id: idAt(repeatsId ? -1 : 0),
          type: kind,
          dependsOn: dependsOn?.map(idAt) ?? null,
          references: [...new Set(references.map(idAt))],
        },
        about: {
          effects,
          concurrency,
          dispatch,
          needsApproval,
          estimateMs,
          reuse,
          ...(policies ? { judged: `${kind}/echo` } : {}),
          refusal: refused ? { code: 'unknown_name', message: 'no such tool' } : null,
        },
        attempts,
        condition,
        approval,
        recalled,
        judged,
        spends,
      };
      return { type, gapMs, action };
    }
  }
}

type ItemSeed = typeof itemSeed extends fc.Arbitrary<infer Seed> ? Seed : never;

const generation: fc.Arbitrary<GenerationScript> = fc.record({
  items: fc.array(itemSeed, { maxLength: 24, size: 'max' }).map((seeds) => seeds.map(planted)),
  finish: fc.oneof(
    { weight: 8, arbitrary: fc.constant('stop' as const) },
    { weight: 2, arbitrary: fc.constantFrom('length', 'content_filter', 'error', 'abort') },
  ),
  usage: fc.record({ tokens: fc.integer({ min: 0, max: 3_000 }), cost: fc.constantFrom(0, 0.01, 0.1) }),
});

/** The limits of one target are the same throughout a world. */
function consistent(world: World): World {
  const limit = new Map<string, number | null>();
  for (const { items } of world.generations) {
    for (const entry of items) {
      if (entry.type !== 'action') continue;
      const target = `${entry.action.fields.type}/${entry.action.fields.name}`;
      const { about } = entry.action;
      const agreed = limit.has(target) ? (limit.get(target) ?? null) : (about.concurrency ?? null);
      limit.set(target, agreed);
      Object.assign(about, { concurrency: agreed });
    }
  }
  return world;
}

const world: fc.Arbitrary<World> = fc
  .record({
    policy: fc.record({
      source: fc.constantFrom('model', 'model', 'text'),
      maxParallelActions: fc.integer({ min: 1, max: 5 }),
      maxParallelByType: fc.constantFrom({}, {}, { tool: 2 }, { tool: 3, python: 1 }, { agent: 1, llm: 1 }),
      maxIterations: fc.integer({ min: 0, max: 4 }),
      maxActions: rarely(8, 2_000),
      seconds: rarely(3, 3_600),
      modelCalls: fc.constantFrom(2, 3, 5, 100, 100, 100),
      tokens: rarely(5_000, null),
      cost: rarely(0.15, null),
      failFast: rarely(true, false),
      responseDefault: fc.constantFrom('auto', 'final', 'continue'),
      onFailedFinal: fc.constantFrom('continue', 'end'),
    } as const),
    generations: fc.array(generation, { minLength: 1, maxLength: 3, size: 'max' }),
    cancelAtMs: fc.oneof(
      { weight: 7, arbitrary: fc.constant(null) },
      { weight: 1, arbitrary: fc.integer({ min: 0, max: 6_000 }) },
    ),
  })
  .map(consistent);

/** Checks barriers by the times of starts and settlements only (S4). */
function barrierBroken(trace: Trace): string | null {
  const accepted = trace.state.nodes.filter(({ admitted }) => admitted);
  const barriers = (node: ActionNode): ActionNode[] =>
    node.declaration.dependsOn !== null
      ? []
      : accepted.filter(
          (sync) => sync.declaration.mode === 'sync' && sync.iteration === node.iteration && sync.index < node.index,
        );
  const reaches = (from: ActionNode, to: ActionNode): boolean => {
    const seen = new Set([from]);
    for (const node of seen) {
      if (node === to) return true;
      for (const next of [...node.dependencies, ...barriers(node)]) seen.add(next);
    }
    return false;
  };
  for (const node of accepted) {
    const started = trace.startedAt.get(node.key);
    if (started === undefined) continue;
    for (const sync of barriers(node)) {
      if ((trace.settledAt.get(sync.key) ?? Infinity) > started && !reaches(sync, node)) {
        return `${node.key} started before the sync action ${sync.key} had settled`;
      }
    }
  }
  return null;
}

describe('random runs', () => {
  // The simulator checks each start: slots, what was judged, and that no slot is idle without reason.
  test('[S1] [S2] [S4] [S5] [S10] [S11] [C9] every run ends and settles each action once, behind its barriers, always with the same commands', () => {
    let judged = 0;
    fc.assert(
      fc.property(world, (it) => {
        const trace = simulate(it);
        for (const key of trace.declared) expect(trace.settledAt.has(key)).toBe(true);
        expect(trace.settledAt.size).toBe(trace.declared.length);
        expect(barrierBroken(trace)).toBeNull();
        let state = initialState();
        for (const [at, input] of trace.inputs.entries()) {
          const again = step(state, input);
          state = again.state;
          expect(again.commands).toEqual(trace.commands[at]);
        }
        judged += trace.inputs.filter(({ type }) => type === 'policy_judged').length;
      }),
      { numRuns },
    );
    expect(judged).toBeGreaterThan(numRuns / 10);
  });

  test('[J5] a cancelled run ends at once, whatever the executors do', () => {
    fc.assert(
      fc.property(world, fc.integer({ min: 0, max: 3_000 }), (it, cancelAtMs) => {
        expect(simulate({ ...it, cancelAtMs }).endedAtMs).toBeLessThanOrEqual(cancelAtMs);
      }),
      { numRuns },
    );
  });

  test('[S5] actions start in the order of priority, longest remaining path, document order', () => {
    const row = fc.record({
      estimateMs: fc.integer({ min: 0, max: 5 }),
      priority: rarely(1, 0, 5),
      dependsOn: fc.uniqueArray(fc.integer({ min: 0, max: 60 }), { maxLength: 3 }),
    });
    fc.assert(
      fc.property(
        fc.array(row, { minLength: 1, maxLength: 40, size: 'max' }),
        fc.boolean(),
        fc.integer({ min: 1, max: 3 }),
        (rows, forward, slots) => {
          // Backward dependencies only, so that there is no cycle; forward references are bound late.
          const dependencies = rows.map(({ dependsOn }, at) =>
            dependsOn.filter((other) => other < rows.length && (forward ? other > at : other < at)),
          );
          const order = forward ? rows.map((_, at) => at) : rows.map((_, at) => rows.length - 1 - at);
          const pathMs: number[] = [];
          for (const at of order) {
            const after = rows.map((_, other) => other).filter((other) => dependencies[other]?.includes(at));
            pathMs[at] = (rows[at]?.estimateMs ?? 0) + Math.max(0, ...after.map((other) => pathMs[other] ?? 0));
          }
          const run = new Driver({ maxParallelActions: slots });
          for (let plug = 0; plug < slots; plug += 1) run.declare({ id: `plug${plug}` });
          for (const [at, { priority, estimateMs }] of rows.entries()) {
            const dependsOn = (dependencies[at] ?? []).map((other) => `a${other}`);
            run.declare({ id: `a${at}`, priority, dependsOn }, { estimateMs });
          }
          run.end();
          const done = new Set<number>();
          const started = new Set<number>();
          const running = Array.from({ length: slots }, (_, plug) => `plug${plug}`);
          for (let id = running.shift(); id !== undefined; id = running.shift()) {
            if (!id.startsWith('plug')) done.add(Number(id.slice(1)));
            const expected: string[] = [];
            while (running.length + expected.length < slots) {
              const ready = rows
                .map((_, at) => at)
                .filter((at) => !started.has(at) && (dependencies[at] ?? []).every((other) => done.has(other)));
              const [best] = ready.sort(
                (a, b) =>
                  (rows[b]?.priority ?? 0) - (rows[a]?.priority ?? 0) || (pathMs[b] ?? 0) - (pathMs[a] ?? 0) || a - b,
              );
              if (best === undefined) break;
              started.add(best);
              expected.push(`a${best}`);
            }
            const chosen = run.succeed(id).filter((command) => command.startsWith('start a'));
            expect(chosen.map((command) => command.slice('start '.length)).sort()).toEqual([...expected].sort());
            running.push(...expected);
          }
          expect(done.size).toBe(rows.length);
        },
      ),
      { numRuns },
    );
  });
});
