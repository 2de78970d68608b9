/** Where the graph's nodes and edges are, in sixteenths of a root em before zooming. */
import type { Layout, Place } from './layout.ts';

export const NODE = { width: 156, height: 44 };
export const PITCH = { x: 196, y: 54 };
/** Left of the first column, and above the first row. */
export const MARGIN = { x: 14, y: 28 };

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** The upper left corner of a node. */
export function cornerOf({ column, row }: Place): Point {
  return { x: MARGIN.x + column * PITCH.x, y: MARGIN.y + row * PITCH.y };
}

/** The column and row at a point, with the space to the right and below. */
export function placeAt({ x, y }: Point): Place {
  return { column: Math.floor((x - MARGIN.x) / PITCH.x), row: Math.floor((y - MARGIN.y) / PITCH.y) };
}

/** Columns and rows, both ends included. */
export interface Area {
  readonly from: Place;
  readonly to: Place;
}

/** Whether an edge may cross the area. */
export function crosses(start: Place, end: Place, { from, to }: Area): boolean {
  return (
    start.column <= to.column &&
    end.column >= from.column &&
    Math.min(start.row, end.row) <= to.row &&
    Math.max(start.row, end.row) >= from.row
  );
}

/** A curve from the right side of a node to the left side of another. */
export function edgePath(from: Place, to: Place): string {
  const start = cornerOf(from);
  const end = cornerOf(to);
  const x = start.x + NODE.width;
  const y = start.y + NODE.height / 2;
  const bend = Math.max(PITCH.x - NODE.width, (end.x - x) / 2);
  return `M${x} ${y}c${bend} 0 ${end.x - x - bend} ${end.y - start.y} ${end.x - x} ${end.y - start.y}`;
}

export function boxPath(place: Place): string {
  const { x, y } = cornerOf(place);
  return `M${x} ${y}h${NODE.width}v${NODE.height}h${-NODE.width}z`;
}

/** Where a key moves the focus. @returns the position of an action; undefined if it moves nowhere */
export function move(key: string, { columns, places }: Layout, index: number): number | undefined {
  const { column = 0, row = 0 } = places[index] ?? {};
  const beside = (nodes: readonly number[] = []): number | undefined => nodes[Math.min(row, nodes.length - 1)];
  const targets: Readonly<Record<string, number | undefined>> = {
    ArrowLeft: beside(columns[column - 1]),
    ArrowRight: beside(columns[column + 1]),
    ArrowUp: columns[column]?.[row - 1],
    ArrowDown: columns[column]?.[row + 1],
    Home: columns[0]?.[0],
    End: columns.at(-1)?.[0],
  };
  return targets[key];
}
