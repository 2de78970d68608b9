/** One action in the graph. */
import { cut } from '../parts/format.ts';
import { memo } from '../parts/memo.ts';
import { NODE } from './graph-geometry.ts';
import { StatusShape } from './status-icon.tsx';
import type { ActionStatus } from './trace-types.ts';

interface GraphNodeProps {
  readonly nodeKey: string;
  readonly id: string;
  /** Accessible name. */
  readonly label: string;
  readonly name: string;
  /** Its duration; empty if it has none. */
  readonly time: string;
  readonly status: ActionStatus;
  readonly x: number;
  readonly y: number;
  readonly isCritical: boolean;
  readonly isSelected: boolean;
  readonly isTabStop: boolean;
}

const ID_CHARS = 15;
/** Of the name, the time and the space between them. */
const LINE_CHARS = 19;

export const GraphNode = memo(({ nodeKey, id, label, name, time, status, x, y, ...is }: GraphNodeProps) => (
  <g
    class={`node status-${status}${is.isCritical ? ' critical' : ''}`}
    transform={`translate(${x} ${y})`}
    data-key={nodeKey}
  >
    <rect
      {...NODE}
      rx="8"
      role="button"
      aria-label={label}
      aria-current={is.isSelected ? 'true' : undefined}
      tabindex={is.isTabStop ? 0 : -1}
    />
    <g aria-hidden="true">
      <StatusShape status={status} transform="translate(8 13)scale(1.125)" />
      <text class="node-id" x="32" y="19">
        {cut(id, ID_CHARS)}
      </text>
      <text x="32" y="35">
        {cut(name, LINE_CHARS - (time === '' ? 0 : time.length + 1))}
      </text>
      <text class="node-time" x={NODE.width - 8} y="35">
        {time}
      </text>
    </g>
  </g>
));
