/**
 * How many rows a statement would go through, from SQLite's own plan (R6): SQLite at the edge cannot be
 * interrupted, so loops within loops over large tables are refused before they begin.
 *
 * An estimate. A search by an index counts as one row; a table that cannot be told from its alias counts
 * as the largest; what `LIMIT` would save is not known.
 */
import type { SqlRow } from '../domain/ports.ts';

/** What is known of the sizes of things that a plan names. */
export interface PlanSizes {
  /** Rows of what the plan calls so, a table or its alias; null when that is neither. */
  readonly rowsOf: (name: string) => number | null;
  /** Rows of the largest table. */
  readonly most: number;
  /** Rows that texts of the statement and its values may unfold to (`json_each`). */
  readonly inTexts: number;
}

interface PlanNode {
  readonly detail: string;
  readonly children: PlanNode[];
}

interface Cost {
  /** Rows that are gone through. */
  readonly steps: number;
  /** Rows that come out, at most. */
  readonly rows: number;
}

const LOOP = /^(SCAN|SEARCH) (.+?)(?: USING .*| VIRTUAL TABLE .*| LEFT-JOIN.*)?$/;

/** Whether a plan holds a loop within a loop: only then can it take long. */
export function isNested(plan: readonly SqlRow[]): boolean {
  return plan.filter(({ detail }) => LOOP.test(String(detail))).length > 1;
}

/** @param plan what `EXPLAIN QUERY PLAN` gave */
export function stepsOf(plan: readonly SqlRow[], sizes: PlanSizes): number {
  const root: PlanNode = { detail: '', children: [] };
  const nodes = new Map<number, PlanNode>([[0, root]]);
  for (const { id, parent, detail } of plan) {
    const node: PlanNode = { detail: String(detail), children: [] };
    nodes.set(Number(id), node);
    (nodes.get(Number(parent)) ?? root).children.push(node);
  }
  return costOf(root, sizes, new Map()).steps;
}

/** @param made rows of the inner queries that have been worked out, by their names */
function costOf({ children }: PlanNode, sizes: PlanSizes, made: Map<string, number>): Cost {
  let loops = 1;
  let steps = 0;
  let apart = 0;
  for (const node of children) {
    const [, kind, name = ''] = LOOP.exec(node.detail) ?? [];
    if (kind !== undefined) {
      loops *= kind === 'SCAN' ? Math.max(1, sizeOf(node.detail, name, sizes, made)) : 1;
      steps += loops;
      continue;
    }
    const inner = costOf(node, sizes, made);
    const [, kept] = /^(?:MATERIALIZE|CO-ROUTINE) (.+)$/.exec(node.detail) ?? [];
    if (kept !== undefined) made.set(kept, inner.rows);
    // Once for every row of the loops around it, or once.
    steps += node.detail.startsWith('CORRELATED') ? loops * inner.steps : inner.steps;
    if (/^(?:LEFT|RIGHT|UNION|COMPOUND|MERGE|EXCEPT|INTERSECT|LEFT-MOST)/.test(node.detail)) apart += inner.rows;
  }
  return { steps, rows: apart > 0 ? apart : loops };
}

function sizeOf(detail: string, name: string, { rowsOf, most, inTexts }: PlanSizes, made: Map<string, number>): number {
  const values = /^(\d+)-ROW VALUES CLAUSE$/.exec(name)?.[1];
  if (values !== undefined) return Number(values);
  if (name === 'CONSTANT ROW') return 1;
  if (detail.includes(' VIRTUAL TABLE ')) return inTexts;
  return made.get(name) ?? rowsOf(name) ?? Math.max(most, ...made.values());
}
