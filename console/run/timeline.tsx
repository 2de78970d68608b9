/** The timeline of a run: when the model was writing, and when each action waited and ran. Only rows in view are drawn. */
import { useState } from 'preact/hooks';
import { duration } from '../parts/format.ts';
import { ActionBox } from './action-box.tsx';
import { describeAction, LEAST_RATIO_MS, overhead } from './describe.ts';
import type { RunViewProps } from './run-view.ts';
import { StatusShape } from './status-icon.tsx';
import { axisMs, ticks } from './time-scale.ts';
import { ActionBars, Generations } from './timeline-bars.tsx';
import { useViewport } from './viewport.ts';

/** In root ems. */
const ROW = 1.5;
const HEAD = 3.25;
const LABELS = 9;
const TICK = 6;
const LABEL = 3.5;
const OVERSCAN = 4;
const MOST_ZOOM = 64;

interface TimelineProps extends RunViewProps {
  /** Milliseconds from the start to the end of the whole run, also if an earlier moment is shown. */
  readonly spanMs: number;
}

export function Timeline({ spanMs, ...props }: TimelineProps) {
  const { trace, bound, now, isLive, chosen } = props;
  const { actions, iterations } = trace;
  const { box, view } = useViewport();
  const [zoom, setZoom] = useState(1);
  const { rem } = view;
  const start = trace.startedAt ?? now;
  const lengthMs = axisMs(spanMs, isLive);
  const labels = Math.min(LABELS * rem, view.width * 0.4);
  const plot = Math.max(1, view.width - labels) * zoom;
  const x = (at: number): number => ((at - start) / lengthMs) * plot;
  const scale = { x, now };
  const row = ROW * rem;
  const head = HEAD * rem;
  const height = actions.length * row;
  const axis = ticks(lengthMs, plot / (TICK * rem));
  const shown = actions.slice(
    Math.max(0, Math.floor(view.top / row) - OVERSCAN),
    Math.ceil((view.top + view.height) / row) + OVERSCAN,
  );
  /** The lines of the lower bound and of the moment that is shown. */
  const marks = (
    <>
      <path class="bound-line" d={`M${x(start + bound.boundMs)} 0v${height + head}`} />
      {trace.endedAt === null && <path class="now-line" d={`M${x(now)} 0v${height + head}`} />}
    </>
  );
  const { boundMs, actualMs, sequentialMs } = bound;
  const more = overhead(actualMs, boundMs);
  const factor = sequentialMs / actualMs;
  return (
    <ActionBox
      {...props}
      {...{ box, view, shown }}
      title="Timeline"
      about={
        <>
          <span class="key-bound">
            lower bound <b>{duration(boundMs)}</b>
          </span>
          <span>
            actual <b>{duration(actualMs)}</b>
            {more !== null && ` (${more})`}
          </span>
          {factor >= 1.05 && actualMs >= LEAST_RATIO_MS && (
            <span>
              in sequence <b>{duration(sequentialMs)}</b>, {factor.toFixed(1)}× as long
            </span>
          )}
        </>
      }
      zoomOut="Shorter time"
      zoomIn="Longer time"
      zoomBy={(factor) => setZoom(Math.min(MOST_ZOOM, Math.max(1, zoom * factor)))}
      areaOf={(index) => ({
        left: view.left,
        top: index * row,
        right: 0,
        bottom: head + (index + 1) * row,
      })}
      move={(key, index) => {
        const page = Math.max(1, Math.floor((view.height - head) / row) - 1);
        const steps: Readonly<Record<string, number>> = {
          ArrowUp: -1,
          ArrowDown: 1,
          PageUp: -page,
          PageDown: page,
          Home: -Infinity,
          End: Infinity,
        };
        const step = steps[key];
        return step === undefined ? step : Math.min(actions.length - 1, Math.max(0, index + step));
      }}
      actionAt={(_, y) => Math.floor(y / row)}
    >
      {(drawn, stop, onClick) => (
        <div class="timeline-grid" style={{ gridTemplateColumns: `${labels}px ${plot}px` }}>
          <div class="timeline-head timeline-corner" />
          <svg class="timeline-head" width={plot} height={head} aria-hidden="true">
            {axis.map(({ ms }) => (
              <path key={ms} d={`M${x(start + ms)} 0v${head}`} />
            ))}
            <Generations trace={trace} scale={scale} y={2.125 * rem} critical={bound.generations} />
            {marks}
            {axis.map(({ ms, label }) => {
              const at = x(start + ms);
              // Near the right edge, the label stands on the left of its line.
              const isLast = at + LABEL * rem > plot;
              return (
                <text
                  key={ms}
                  class={isLast ? 'tick tick-last' : 'tick'}
                  x={at + (isLast ? -0.25 : 0.25) * rem}
                  y={rem}
                >
                  {label}
                </text>
              );
            })}
          </svg>
          <div
            class="timeline-labels"
            style={{ height: `${height}px` }}
            role="group"
            aria-label="Actions"
            {...{ onClick }}
          >
            {drawn.map((action) => {
              const isCritical = bound.path.has(action.key);
              return (
                <button
                  key={action.key}
                  type="button"
                  class={`status-${action.status}${isCritical ? ' critical' : ''}`}
                  style={{ top: `${action.index * row}px`, height: `${row}px` }}
                  data-key={action.key}
                  tabIndex={action === stop ? 0 : -1}
                  aria-label={describeAction(action, now, isCritical)}
                  aria-current={action === chosen ? 'true' : undefined}
                >
                  <svg viewBox="0 0 16 16" aria-hidden="true">
                    <StatusShape status={action.status} />
                  </svg>
                  <span class="clip">{action.id}</span>
                </button>
              );
            })}
          </div>
          <svg class="timeline-rows" width={plot} height={height} aria-hidden="true" onClick={onClick}>
            {iterations.map(({ iteration, startedAt, generationEnd }) => (
              <rect
                key={iteration}
                class="speaks"
                x={x(startedAt)}
                width={Math.max(0, x(generationEnd ?? now) - x(startedAt))}
                height={height}
              />
            ))}
            {drawn.map((action) => (
              <g key={action.key}>
                <rect class={action === chosen ? 'chosen' : ''} y={action.index * row} width={plot} height={row} />
                <ActionBars
                  action={action}
                  scale={scale}
                  y={(action.index + 0.5) * row}
                  isCritical={bound.path.has(action.key)}
                />
              </g>
            ))}
            {marks}
          </svg>
        </div>
      )}
    </ActionBox>
  );
}
