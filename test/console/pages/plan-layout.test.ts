/** Where the actions of a plan are drawn (U5). */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { layoutPlan } from '../../../console/pages/plan-layout.ts';
import type { Plan } from '../../../src/client/index.ts';

type Drawn = Pick<Plan, 'waves' | 'edges' | 'critical_path'>;

/** @param dependencies of each action, on earlier ones */
function planOf(dependencies: readonly (readonly number[])[], critical: readonly number[] = []): Drawn {
  const depths: number[] = [];
  const waves: string[][] = [];
  for (const [at, before] of dependencies.entries()) {
    const depth = Math.max(-1, ...before.map((each) => depths[each] ?? -1)) + 1;
    depths.push(depth);
    (waves[depth] ??= []).push(`a${at}`);
  }
  return {
    waves,
    edges: dependencies.flatMap((before, at) => before.map((each) => ({ from: `a${each}`, to: `a${at}` }))),
    critical_path: critical.map((at) => `a${at}`),
  };
}

const plans = fc
  .array(fc.array(fc.nat(), { maxLength: 4 }), { maxLength: 40 })
  .map((all) => planOf(all.map((before, at) => (at === 0 ? [] : [...new Set(before.map((each) => each % at))]))));

/** The curves of a path: where each one begins and ends. */
function curvesIn(path: string): { readonly from: readonly number[]; readonly to: readonly number[] }[] {
  return [...path.matchAll(/M(\S+) (\S+)C\S+ \S+ \S+ \S+ (\S+) ([^M]+)/g)].map(([, x, y, endX, endY]) => ({
    from: [Number(x), Number(y)],
    to: [Number(endX), Number(endY)],
  }));
}

describe('[U5] the drawing of a plan', () => {
  test('has a column for each wave, and lines from each action to those that depend on it', () => {
    const { columns, rows, edges, critical } = layoutPlan(planOf([[], [], [0, 1], [2]], [0, 2, 3]));
    expect([columns, rows]).toEqual([[['a0', 'a1'], ['a2'], ['a3']], 2]);
    expect(curvesIn(edges)).toEqual([
      { from: [0.9, 0.5], to: [1.1, 0.5] },
      { from: [0.9, 1.5], to: [1.1, 0.5] },
      { from: [1.9, 0.5], to: [2.1, 0.5] },
    ]);
    expect(curvesIn(critical)).toEqual([curvesIn(edges)[0], curvesIn(edges)[2]]);
  });

  test('shows each action once, and each dependency from left to right', () => {
    fc.assert(
      fc.property(plans, (plan) => {
        const { columns, rows, edges } = layoutPlan(plan);
        expect(columns).toEqual(plan.waves);
        const curves = curvesIn(edges);
        expect(curves).toHaveLength(plan.edges.length);
        for (const { from, to } of curves) {
          expect((from[0] ?? 0) < (to[0] ?? 0) && (to[0] ?? 0) < columns.length).toBe(true);
          expect(Math.max(from[1] ?? 0, to[1] ?? 0)).toBeLessThan(rows);
        }
      }),
    );
  });

  test('of a large plan leaves actions out, with their edges', () => {
    fc.assert(
      fc.property(plans, fc.nat({ max: 10 }), (plan, most) => {
        const { columns, edges } = layoutPlan(plan, most);
        const drawn = new Set(columns.flat());
        expect(drawn.size).toBe(Math.min(most, plan.waves.flat().length));
        expect(columns.every(({ length }) => length > 0)).toBe(true);
        expect(curvesIn(edges)).toHaveLength(
          plan.edges.filter(({ from, to }) => drawn.has(from) && drawn.has(to)).length,
        );
      }),
    );
  });

  test('of nothing is empty', () => {
    expect(layoutPlan(planOf([]))).toEqual({ columns: [], rows: 0, edges: '', critical: '' });
  });
});
