/** A status as a shape, so that it is visible without its colour. 16 units wide. */
import type { ActionStatus } from './trace-types.ts';

const RING = 'M8 2.5a5.5 5.5 0 1 0 .01 0';
/** Drawn with a line of the status's colour. */
const SHAPES: Readonly<Record<ActionStatus, string>> = {
  queued: RING,
  waiting: `${RING}M8 5v3.5l2.2 1.6`,
  running: 'M8 2.5a5.5 5.5 0 1 1-5.5 5.5',
  completed: `${RING}M5.4 8.2l1.9 1.9 3.4-3.8`,
  failed: 'M4 4l8 8M12 4l-8 8',
  rejected: 'M3 3h10v10h-10zM6 6l4 4M10 6l-4 4',
  skipped: 'M3.5 4l4 4-4 4M8.5 4l4 4-4 4',
  cancelled: `${RING}M4 4l8 8`,
};

/** Inside of an SVG. */
export function StatusShape({ status, transform }: { readonly status: ActionStatus; readonly transform?: string }) {
  return (
    <g class="shape" transform={transform}>
      <path d={SHAPES[status]} />
    </g>
  );
}
