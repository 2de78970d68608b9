/**
 * The graph of a run's actions.
 *
 * Invariants:
 *  1. The DOM has the nodes in view and at most two more: the tab stop and the selected one.
 *  2. Zoomed out so far that labels cannot be read, each status is one path.
 */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { duration, plural } from '../parts/format.ts';
import { Loading } from '../parts/loaded.tsx';
import { ActionBox } from './action-box.tsx';
import { describeAction } from './describe.ts';
import { GraphDrawing } from './graph-drawing.tsx';
import { cornerOf, MARGIN, move, NODE, PITCH, placeAt } from './graph-geometry.ts';
import type { Point } from './graph-geometry.ts';
import { GraphNode } from './graph-node.tsx';
import { Layout } from './layout.ts';
import type { RunViewProps } from './run-view.ts';
import { ranMs } from './trace-types.ts';
import { useViewport } from './viewport.ts';

const LEAST_ZOOM = 0.02;
const MOST_ZOOM = 2;
/** Least zoom of a run that is opened. */
const OPENING_ZOOM = 0.75;
/** Pixels of a unit of the drawing below which labels are not drawn. */
const READABLE_SCALE = 0.44;
/** Durations of running nodes, and a live graph that is zoomed out, change so often. */
const TIME_MS = 250;

export function Graph(props: RunViewProps) {
  const { trace, bound, now, isLive, isLoading, chosen } = props;
  const { actions, startedAt } = trace;
  const layout = useMemo(() => new Layout(), [trace]);
  layout.update(actions);
  const { columns, rows, places, bands } = layout;
  const { box, view } = useViewport();
  const { left, top, width, height } = view;
  const [zoom, setZoom] = useState<number | null>(null);
  const unit = view.rem / 16;
  const scale = (zoom ?? 1) * unit;
  const size = { width: columns.length * PITCH.x, height: MARGIN.y + rows * PITCH.y };
  const fit = Math.min(1, width / size.width / unit, height / size.height / unit);
  useEffect(() => {
    if (zoom === null && actions.length > 0 && width > 0) setZoom(isLive ? 1 : Math.max(OPENING_ZOOM, fit));
  });

  /** What stays in the middle while it is zoomed. */
  const center = useRef<Point | null>(null);
  const zoomTo = (to: number): void => {
    center.current = { x: (left + width / 2) / scale, y: (top + height / 2) / scale };
    setZoom(Math.min(MOST_ZOOM, Math.max(LEAST_ZOOM, to)));
  };
  useLayoutEffect(() => {
    const at = center.current;
    if (at !== null) box.current?.scrollTo(at.x * scale - width / 2, at.y * scale - height / 2);
    center.current = null;
  }, [scale]);

  /** With one more row and column on each side. */
  const from = placeAt({ x: left / scale - PITCH.x, y: top / scale - PITCH.y });
  const to = placeAt({ x: (left + width) / scale + PITCH.x, y: (top + height) / scale + PITCH.y });
  const isReadable = scale >= READABLE_SCALE;
  const shown = columns
    .slice(Math.max(0, from.column), isReadable ? to.column + 1 : 0)
    .flatMap((nodes) => nodes.slice(Math.max(0, from.row), to.row + 1))
    .map((index) => actions[index]);

  const time = Math.floor(now / TIME_MS) * TIME_MS;
  // All nodes and edges: too much for each frame.
  const drawing = useMemo(
    () => <GraphDrawing {...{ trace, bound, chosen, layout }} area={isReadable ? { from, to } : null} />,
    [trace, chosen, isReadable ? view : null, scale, isLive && !isReadable ? time : trace.revision],
  );
  return (
    <ActionBox
      {...props}
      {...{ box, view, shown }}
      title="Graph"
      about={
        <>
          {actions.length > 0 && `${plural(actions.length, 'action')} in ${plural(columns.length, 'wave')}`}
          {bound.path.size > 0 && <span class="key-critical">critical path</span>}
        </>
      }
      zoomOut="Zoom out"
      zoomIn="Zoom in"
      zoomBy={(factor) => zoomTo((zoom ?? 1) * factor)}
      controls={
        <button type="button" class="small" onClick={() => zoomTo(fit)}>
          Fit
        </button>
      }
      areaOf={(index) => {
        const { x, y } = cornerOf(places[index] ?? { column: 0, row: 0 });
        return {
          left: (x - MARGIN.x) * scale,
          top: (y - MARGIN.y) * scale,
          right: (x + NODE.width + MARGIN.x) * scale,
          bottom: (y + NODE.height + MARGIN.x) * scale,
        };
      }}
      move={(key, index) => move(key, layout, index)}
      actionAt={(x, y) => {
        const { column, row } = placeAt({ x: x / scale, y: y / scale });
        return columns[column]?.[row];
      }}
    >
      {(drawn, stop, onClick) => (
        <>
          {actions.length === 0 && (
            <div class="quiet empty">
              {isLive ? (
                'No action yet.'
              ) : startedAt !== null || trace.endedAt !== null ? (
                'This run has no actions.'
              ) : isLoading ? (
                <Loading />
              ) : (
                'This run has not begun.'
              )}
            </div>
          )}
          <svg
            width={Math.floor(size.width * scale)}
            height={Math.floor(size.height * scale)}
            role="group"
            aria-label="Actions. The arrow keys move, Enter opens"
            onClick={onClick}
          >
            <g class={isReadable ? '' : 'far'} transform={`scale(${scale})`}>
              {bands.size > 1 &&
                [...bands].map(([iteration, column]) => {
                  const { x } = cornerOf({ column, row: 0 });
                  return (
                    <g key={iteration} class="band" aria-hidden="true">
                      <path d={`M${x - (PITCH.x - NODE.width) / 2} 0v${size.height}`} />
                      <text x={x} y="18">
                        Iteration {iteration}
                      </text>
                    </g>
                  );
                })}
              {drawing}
              {drawn.map((action) => {
                const ms = ranMs(action, time);
                const isCritical = bound.path.has(action.key);
                return (
                  <GraphNode
                    key={action.key}
                    nodeKey={action.key}
                    id={action.id}
                    label={describeAction(action, time, isCritical)}
                    name={action.name ?? action.written.type ?? ''}
                    time={action.isCached ? 'cached' : ms === null ? '' : duration(ms)}
                    status={action.status}
                    {...cornerOf(places[action.index] ?? from)}
                    isCritical={isCritical}
                    isSelected={action === chosen}
                    isTabStop={action === stop}
                  />
                );
              })}
            </g>
          </svg>
        </>
      )}
    </ActionBox>
  );
}
