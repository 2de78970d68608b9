/** A plan as a drawing: a column for each wave, a row for each of its actions. */
import type { Plan } from '../../src/client/index.ts';
import * as limits from '../parts/limits.ts';

export interface PlanLayout {
  /** Ids by wave, from left to right. */
  readonly columns: readonly (readonly string[])[];
  readonly rows: number;
  /** SVG paths, in columns and rows: of all dependencies, and of the critical path. */
  readonly edges: string;
  readonly critical: string;
}

/** Half of a node's width, in columns. */
const HALF = 0.4;

/** @param most nodes that are drawn; the others are left out, with their edges */
export function layoutPlan(
  { waves, edges, critical_path: path }: Pick<Plan, 'waves' | 'edges' | 'critical_path'>,
  most: number = limits.planNodes,
): PlanLayout {
  const places = new Map<string, readonly [x: number, y: number]>();
  const columns: (readonly string[])[] = [];
  for (const wave of waves) {
    const column = wave.slice(0, most - places.size);
    if (column.length > 0) columns.push(column);
    for (const [row, id] of column.entries()) places.set(id, [columns.length - 0.5, row + 0.5]);
  }
  const edge = (from: string, to: string): string => {
    const [start, end] = [places.get(from), places.get(to)];
    if (start === undefined || end === undefined) return '';
    const [[x, y], [endX, endY]] = [start, end];
    return `M${x + HALF} ${y}C${x + 0.5} ${y} ${endX - 0.5} ${endY} ${endX - HALF} ${endY}`;
  };
  return {
    columns,
    rows: Math.max(0, ...columns.map(({ length }) => length)),
    edges: edges.map(({ from, to }) => edge(from, to)).join(''),
    critical: path
      .slice(1)
      .map((id, at) => edge(path[at] ?? '', id))
      .join(''),
  };
}
