/** The edges of the graph, and its nodes when it is zoomed out: few paths, however many there are. */
import * as limits from '../parts/limits.ts';
import { boxPath, crosses, edgePath } from './graph-geometry.ts';
import type { Area } from './graph-geometry.ts';
import type { Layout } from './layout.ts';
import type { RunViewProps } from './run-view.ts';

interface GraphDrawingProps extends Pick<RunViewProps, 'trace' | 'bound' | 'chosen'> {
  readonly layout: Layout;
  /** Null: zoomed out so far that labels cannot be read. */
  readonly area: Area | null;
}

export function GraphDrawing({ trace, bound, chosen, layout, area }: GraphDrawingProps) {
  /** By class. */
  const paths: Record<string, string> = {};
  const add = (name: string, path: string): void => {
    paths[name] = (paths[name] ?? '') + path;
  };
  let edges = 0;
  for (const action of trace.actions) {
    const place = layout.places[action.index];
    if (place === undefined) continue;
    const isCritical = bound.path.has(action.key);
    if (area === null) {
      add(`far-node status-${action.status}`, boxPath(place));
      if (isCritical) add('far-ring', boxPath(place));
    }
    for (const before of action.dependencies) {
      const from = layout.places[before.index];
      if (from === undefined || (area !== null && !crosses(from, place, area))) continue;
      edges += 1;
      if (edges > limits.edgesDrawn) break;
      const isChosen = action === chosen || before === chosen;
      const kind = isChosen ? ' edge-selected' : isCritical && bound.path.has(before.key) ? ' edge-critical' : '';
      add(`edge${kind}`, edgePath(from, place));
    }
  }
  return (
    <g aria-hidden="true">
      {Object.keys(paths)
        .toSorted()
        .map((name) => (
          <path key={name} class={name} d={paths[name]} />
        ))}
    </g>
  );
}
