/** The budget that sub-agents and workflows get from their parent (S12, M7). */
import { expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import type { ChildBudget } from '../../src/domain/ports/children.ts';
import type { Spent } from '../../src/domain/spent.ts';
import type { SchedulerCommand } from '../../src/scheduler/types.ts';
import { Driver, withoutTimers } from '../support/scheduler-kit.ts';

const budgets = (run: Driver): (ChildBudget | null)[] =>
  run.commands
    .filter((command): command is Extract<SchedulerCommand, { type: 'start' }> => command.type === 'start')
    .map(({ budget }) => budget);

const ended = (run: Driver, id: string, spent: Spent): void =>
  void run.send({ type: 'attempt_succeeded', key: run.key(id), attempt: 1, spent });

const POLICY = { modelCalls: 22, tokens: 41_024, cost: 4, maxActions: 41, seconds: 100, maxChildren: 21 };

test('[S12] a child gets a share of the remaining budget without the last generation’s reserve; other actions get none', () => {
  const run = new Driver(POLICY);
  run.declare({ id: 't' });
  run.declare({ id: 'c', type: 'agent' });
  const [tool, child] = budgets(run);
  expect(tool).toBeNull();
  // 22 calls: one is in use, one is reserved; half of the rest stays for later actions.
  expect(child).toEqual({ seconds: 100, modelCalls: 10, tokens: 20_000, cost: 2, actions: 19, children: 7 });
});

test('[S12] a reserved share is unavailable to others until the child ends, which returns what it did not spend', () => {
  const run = new Driver(POLICY);
  run.declare({ id: 'c', type: 'agent' });
  run.declare({ id: 'd', type: 'workflow' });
  expect(budgets(run).map((budget) => budget?.modelCalls)).toEqual([10, 5]);
  ended(run, 'c', { modelCalls: 2, tokens: 1_000, cost: 0.5, actions: 3 });
  ended(run, 'd', { modelCalls: 0, tokens: 0, cost: 0, actions: 0 });
  run.declare({ id: 'e', type: 'agent' });
  expect(budgets(run).at(-1)).toMatchObject({ modelCalls: 9, tokens: 19_500, cost: 1.75 });
});

test('[S12] a child that fails, is cancelled or times out returns what it did not spend', () => {
  for (const end of ['fail', 'cancel'] as const) {
    const run = new Driver({ ...POLICY, modelCalls: 4 });
    run.declare({ id: 'c', type: 'agent' });
    if (end === 'fail') run.fail('c');
    else run.cancel();
    expect(run.state.reserved).toEqual({ modelCalls: 0, tokens: 0, cost: 0, actions: 0, children: 0 });
  }
});

test('[S12] the remaining budget is shared with the waiting children, and seconds are the remaining seconds', () => {
  const run = new Driver(POLICY);
  run.declare({ id: 't' });
  for (const id of ['c', 'd', 'e']) run.declare({ id, type: 'agent', dependsOn: ['t'] });
  run.at += 40_000;
  run.succeed('t');
  // A quarter of 20 calls, a third of 15, half of 10: one share for each child, and one for later actions.
  expect(budgets(run).map((budget) => [budget?.seconds, budget?.modelCalls])).toEqual([
    [undefined, undefined],
    [60, 5],
    [60, 5],
    [60, 5],
  ]);
});

test('[S12] without remaining budget a child is not started, and the run reports it', () => {
  const run = new Driver({ ...POLICY, modelCalls: 2 });
  expect(withoutTimers(run.declare({ id: 'c', type: 'agent' }))).toContain('settle c failed budget_exceeded');
});

test('[S12] money that is reserved for a child is not spent by others', () => {
  const run = new Driver(POLICY);
  run.declare({ id: 'c', type: 'agent' });
  expect(budgets(run).at(-1)?.cost).toBe(2);
  run.send({ type: 'usage_recorded', tokens: 0, cost: 2 });
  expect(withoutTimers(run.declare({ id: 'n', type: 'llm' }))).toContain('settle n failed budget_exceeded');
});

test('[S12] children declared together never get more actions than the run has', () => {
  const run = new Driver({ ...POLICY, maxActions: 5 });
  run.declare({ id: 't' });
  for (const id of ['c', 'd', 'e']) run.declare({ id, type: 'agent', dependsOn: ['t'] });
  run.succeed('t');
  // Five actions, four of them declared: one is left, and one child gets it.
  expect(budgets(run).map((budget) => budget?.actions)).toEqual([undefined, 1, 0, 0]);
});

test('[M7] a child gets a number of descendant sessions before it starts, and returns the unused ones', () => {
  const run = new Driver({ ...POLICY, maxChildren: 20 });
  for (const id of ['a', 'b', 'c']) run.declare({ id, type: 'workflow' });
  // Half is kept for siblings: two thirds of 19 - 9, of 11 - 8, of 8 - 7.
  expect(budgets(run).map((budget) => budget?.children)).toEqual([7, 2, 1]);
  ended(run, 'a', { modelCalls: 0, tokens: 0, cost: 0, actions: 0, children: 2 });
  expect(run.state.children).toBe(2);
  run.declare({ id: 'd', type: 'agent' });
  expect(budgets(run).at(-1)?.children).toBe(4);
});

test('[M7] many parallel children all start, also five levels deep', () => {
  const wide = new Driver({
    ...POLICY,
    modelCalls: 2 ** 40,
    tokens: null,
    cost: null,
    maxActions: 2 ** 40,
    maxParallelActions: 30,
    maxChildren: limits.childrenPerRun,
  });
  for (let n = 0; n < 30; n += 1) wide.declare({ id: `c${n}`, type: 'agent' });
  expect(budgets(wide)).toHaveLength(30);
  let maxChildren: number = limits.childrenPerRun;
  let depth = 0;
  while (maxChildren > 0) {
    const run = new Driver({ ...POLICY, maxChildren });
    run.declare({ id: 'c', type: 'agent' });
    maxChildren = budgets(run)[0]?.children ?? 0;
    depth += 1;
  }
  expect(depth).toBeGreaterThanOrEqual(limits.childDepth);
});

test('[M7] without remaining sessions a child is not started; its siblings and the loop continue', () => {
  const run = new Driver({ ...POLICY, maxChildren: 2 });
  run.declare({ id: 'a', type: 'workflow' });
  expect(withoutTimers(run.declare({ id: 'b', type: 'workflow' }))).toContain('settle b failed too_many_children');
  run.declare({ id: 't' });
  expect(budgets(run).map((budget) => budget?.children)).toEqual([1, undefined]);
  expect(run.state.exceeded).toEqual([]);
});

test('[M7] a child refused before its start counts for nothing; a child with an unknown end counts with its full share', () => {
  const error = { code: 'x', message: 'x', retryable: false };
  for (const [beforeDispatch, children] of [
    [true, 0],
    [false, 5],
  ] as const) {
    const run = new Driver({ ...POLICY, maxChildren: 10 });
    run.declare({ id: 'a', type: 'workflow' });
    run.send({ type: 'attempt_failed', key: run.key('a'), attempt: 1, error: { ...error, beforeDispatch }, random: 0 });
    expect(run.state.children).toBe(children);
  }
});

test('[M7] a tree of workflows that each start eight copies of themselves ends within the limit', () => {
  let sessions = 0;
  const grow = (maxChildren: number, depth: number): number => {
    if (depth > limits.childDepth) return 0;
    const run = new Driver({ ...POLICY, modelCalls: 1_000, maxActions: 2_000, maxParallelActions: 8, maxChildren });
    for (let n = 0; n < 8; n += 1) run.declare({ id: `s${n}`, type: 'workflow' });
    let below = 0;
    for (const [n, budget] of budgets(run).entries()) {
      if (budget === null) continue;
      sessions += 1;
      const children = 1 + grow(budget.children, depth + 1);
      below += children;
      ended(run, `s${n}`, { modelCalls: 0, tokens: 0, cost: 0, actions: 0, children });
    }
    return below;
  };
  expect(grow(limits.childrenPerRun, 1)).toBe(sessions);
  expect(sessions).toBeLessThanOrEqual(limits.childrenPerRun);
  expect(sessions).toBeGreaterThan(limits.childrenPerRun / 2);
});
