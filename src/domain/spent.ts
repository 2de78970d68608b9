/** Sums of what children have spent of their parents' budgets (S12). */
import type { Spent } from './ports.ts';

export const NOTHING_SPENT: Spent = { modelCalls: 0, tokens: 0, cost: 0, actions: 0, children: 0 };

/** @param sign -1 takes `b` away */
export function addSpent(a: Spent, b: Spent, sign: 1 | -1 = 1): Spent {
  return {
    modelCalls: a.modelCalls + sign * b.modelCalls,
    tokens: a.tokens + sign * b.tokens,
    cost: a.cost + sign * b.cost,
    actions: a.actions + sign * b.actions,
    children: (a.children ?? 0) + sign * (b.children ?? 0),
  };
}
