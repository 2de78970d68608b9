import { describe, expect, test } from 'vitest';
import { buildPlan, planOf, planStatically } from '../../src/scheduler/plan.ts';
import type { PlanEntry, PlannedAction } from '../../src/scheduler/plan.ts';
import type { ActionDeclaration, ActionRejection } from '../../src/domain/action.ts';
import { Driver, declaration, policy } from '../support/scheduler-kit.ts';
import { researchAssistant } from './research-assistant.ts';

function entries(...actions: (Partial<ActionDeclaration> & { readonly id: string })[]): PlanEntry[] {
  return actions.map((fields, ordinal) => ({ action: declaration({ ordinal, ...fields }), policy: policy() }));
}

const rejection: ActionRejection = {
  ordinal: 0,
  id: 'broken',
  type: null,
  mode: null,
  name: null,
  code: 'invalid_json',
  message: 'not JSON',
  line: 1,
  column: 1,
  excerpt: '',
};

describe('any declarations', () => {
  const planned = (id: string, fields: Partial<PlannedAction> = {}): PlannedAction => ({
    id,
    type: 'tool',
    mode: 'async',
    name: 'echo',
    dependsOn: [],
    estimateMs: 1_000,
    ...fields,
  });

  test('[H6] a rejected action appears only in the rejected list, and its dependents stay', () => {
    const plan = planStatically([
      { rejection },
      ...entries({ id: 'a', ordinal: 1, dependsOn: ['broken'] }, { id: 'b', ordinal: 2, dependsOn: ['nowhere'] }),
      ...entries({ id: 'c', ordinal: 3, references: ['b'] }),
    ]);
    expect(plan.rejected.map(({ id, code }) => [id, code])).toEqual([
      ['broken', 'invalid_json'],
      ['b', 'unknown_dependency'],
    ]);
    expect(plan.report.actions.map(({ id, dependsOn }) => [id, dependsOn])).toEqual([
      ['a', ['broken']],
      ['c', ['b']],
    ]);
    expect(plan.report.waves).toEqual([['a', 'c']]);
  });

  test('[H6] depends_on contains the implicit dependencies, and waves show the barriers', () => {
    const { report } = planStatically(
      entries(
        { id: 's', mode: 'sync', dependsOn: ['late'] },
        { id: 'late' },
        { id: 'held', references: ['late'] },
        { id: 'free', dependsOn: [] },
      ),
    );
    expect(report.actions.map(({ id, dependsOn }) => [id, dependsOn])).toEqual([
      ['s', ['late']],
      ['late', []],
      ['held', ['late']],
      ['free', []],
    ]);
    expect(report.waves).toEqual([['late', 'free'], ['s'], ['held']]);
  });

  test('[S4] an awaited fire_and_forget action is planned as async, with the warning', () => {
    const plan = planStatically(entries({ id: 'a', mode: 'fire_and_forget' }, { id: 'b', references: ['a'] }));
    expect(plan.report.byMode).toEqual({ async: 2 });
    expect(plan.warnings.map(({ code }) => code)).toEqual(['fire_and_forget_awaited']);
  });

  test('[S13] the plan of a run that has already started is the plan of its text', () => {
    const run = new Driver();
    for (const entry of researchAssistant) {
      if ('action' in entry) run.declare(entry.action, entry.policy);
      if (run.state.generation?.nodes.length === 4) run.succeed('fetch_wiki');
    }
    run.end();
    expect(planOf(run.state, 1)).toEqual(planStatically(researchAssistant).report);
  });

  test('[S13] dependencies on earlier iterations delay nothing and are listed separately', () => {
    const run = new Driver();
    run.declare({ id: 'a' });
    run.succeed('a');
    run.end();
    run.declare({ id: 'b', dependsOn: ['a'] });
    run.declare({ id: 'a' });
    run.end();
    const report = planOf(run.state, 2);
    expect(report.waves).toEqual([['b', 'a']]);
    expect(report.actions[0]?.earlier).toEqual(['a']);
  });

  test('[S13] a cycle is cut: first at its barriers, then at dependencies on later actions', () => {
    const barrier = buildPlan([planned('a', { dependsOn: ['b'] }), planned('b', { heldBy: ['a'] })]);
    expect(barrier.waves).toEqual([['b'], ['a']]);
    const later = buildPlan([planned('a', { dependsOn: ['b'] }), planned('b', { dependsOn: ['a'] }), planned('c')]);
    expect(later.waves).toEqual([['a', 'c'], ['b']]);
    expect(later.edges).toEqual([{ from: 'a', to: 'b' }]);
  });

  test('[S3][S13] a plan shows a cycle that passes through a skipped action without it', () => {
    const run = new Driver();
    run.declare({ id: 'a', dependsOn: ['d', 'b'] });
    run.declare({ id: 'b', dependsOn: ['a'] });
    run.declare({ id: 'c', dependsOn: ['b', 'a'] });
    run.declare({ id: 'd', dependsOn: ['c'] });
    run.end();
    const report = planOf(run.state, 1);
    expect(report.waves).toEqual([['a'], ['c'], ['d']]);
    expect(report.edges).toEqual([
      { from: 'a', to: 'c' },
      { from: 'c', to: 'd' },
    ]);
  });

  test('[S13] dependencies outside the plan delay nothing: unknown ids, the action’s own id, a rejected action with the same id', () => {
    const report = buildPlan([
      planned('a'),
      planned('b', { dependsOn: ['b', 'nowhere', 'a', 'a'], dependsOnRejected: ['a'] }),
      planned('c', { dependsOn: ['a', 'a'] }),
    ]);
    expect(report.edges).toEqual([{ from: 'a', to: 'c' }]);
    expect(report.waves).toEqual([['a', 'b'], ['c']]);
  });

  test('[S13] an action starts at the latest end of its dependencies and barriers, and the path goes through that one', () => {
    const report = buildPlan([
      planned('s', { mode: 'sync', estimateMs: 500 }),
      planned('a', { estimateMs: 3_000 }),
      planned('b', { dependsOn: ['a'], heldBy: ['s'], estimateMs: 100 }),
      planned('c', { dependsOn: ['b', 's'], estimateMs: 50 }),
      planned('d', { heldBy: ['s'], estimateMs: 10 }),
      planned('e', { heldBy: ['s'], dependsOn: ['d'], estimateMs: 0 }),
    ]);
    expect(report.startsMs).toEqual([0, 0, 3_000, 3_100, 500, 510]);
    expect(report.waves).toEqual([
      ['s', 'a'],
      ['b', 'd'],
      ['c', 'e'],
    ]);
    expect(report.barriers).toEqual([{ id: 's', wave: 0, holds: ['b', 'd', 'e'] }]);
    expect(report.criticalPath).toEqual(['a', 'b', 'c']);
    expect(report.estimates).toEqual({
      sequential_ms: 3_660,
      waves_ms: 3_150,
      critical_path_ms: 3_150,
      speedup: 1.16,
    });
  });

  test('[S13] in a cycle with barriers, only barriers of the cycle are cut', () => {
    const report = buildPlan([
      planned('s', { mode: 'sync' }),
      planned('a', { mode: 'sync', dependsOn: ['b'] }),
      planned('b', { heldBy: ['s', 'a'] }),
      planned('c', { heldBy: ['s'] }),
    ]);
    expect(report.waves).toEqual([['s'], ['b', 'c'], ['a']]);
    expect(report.barriers).toEqual([{ id: 's', wave: 0, holds: ['b', 'c'] }]);
  });
});
