/**
 * Places the nodes of a graph in columns and rows.
 *
 * Invariants:
 *  1. A node that has been placed never moves: a later one gets the first free row of its column.
 *  2. A node is to the right of each dependency that is known when it is placed.
 *  3. The columns of an iteration are to the right of those of the earlier iterations.
 *  4. The places depend on the order of the actions only, so an earlier moment of the run has the same places.
 */

export interface Place {
  readonly column: number;
  readonly row: number;
}

interface Node {
  /** Position in the run. */
  readonly index: number;
  readonly iteration: number;
  readonly dependencies: readonly Node[];
}

export class Layout {
  /** By the position of the action. */
  readonly places: Place[] = [];
  /** The first column of each iteration. */
  readonly bands = new Map<number, number>();
  /** Positions of actions by column and row. */
  readonly columns: number[][] = [];
  rows = 0;

  /** Places the actions that are new. @param actions all of the run, in order */
  update(actions: readonly Node[]): void {
    for (const { index, iteration, dependencies } of actions.slice(this.places.length)) {
      let column = this.bands.get(iteration) ?? this.columns.length;
      this.bands.set(iteration, column);
      for (const before of dependencies) column = Math.max(column, (this.places[before.index]?.column ?? -1) + 1);
      const nodes = (this.columns[column] ??= []);
      this.places.push({ column, row: nodes.length });
      nodes.push(index);
      this.rows = Math.max(this.rows, nodes.length);
    }
  }
}
