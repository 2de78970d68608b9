/** What is spent of a budget, and its sums (S12). */

/** What was spent of a budget, with what was started below. */
export interface Spent {
  readonly modelCalls: number;
  readonly tokens: number;
  /** US dollars, of the calls whose price is known. */
  readonly cost: number;
  readonly actions: number;
  /** Sessions that were started. Absent in what older code has recorded. */
  readonly children?: number;
}

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
