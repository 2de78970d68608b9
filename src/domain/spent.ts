/** Budget spending and its sums (S12). */

/** Budget spent by a session and its child sessions. */
export interface Spent {
  readonly modelCalls: number;
  readonly tokens: number;
  /** US dollars, for the calls whose price is known. */
  readonly cost: number;
  readonly actions: number;
  /** Sessions started. Absent: unknown. */
  readonly children?: number;
}

export const NOTHING_SPENT: Spent = { modelCalls: 0, tokens: 0, cost: 0, actions: 0, children: 0 };

/** @param sign -1 subtracts `b` */
export function addSpent(a: Spent, b: Spent, sign: 1 | -1 = 1): Spent {
  return {
    modelCalls: a.modelCalls + sign * b.modelCalls,
    tokens: a.tokens + sign * b.tokens,
    cost: a.cost + sign * b.cost,
    actions: a.actions + sign * b.actions,
    children: (a.children ?? 0) + sign * (b.children ?? 0),
  };
}
