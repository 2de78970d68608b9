/** The times of one action as bars, and those of the generations. A bar is a line as wide as its style says. */
import type { VNode } from 'preact';
import * as limits from '../parts/limits.ts';
import type { Bound } from './bound.ts';
import type { Trace } from './trace.ts';
import { beganAt } from './trace-types.ts';
import type { TraceAction } from './trace-types.ts';

export interface Scale {
  /** Pixels of a time. */
  readonly x: (at: number) => number;
  readonly now: number;
}

/** Pixels that are visible. */
const LEAST_WIDTH = 2;
/** Width of a character of a name, at most. */
const CHAR_WIDTH = 8;

/** @returns draws a line of a class from one time to another, if it is wide enough */
function lines({ x }: Scale, y: number): (name: string, from: number, to: number, least?: number) => VNode | null {
  return (name, from, to, least = 0) => {
    const width = Math.max(least, x(to) - x(from));
    return width > 0 ? <path key={name + from} class={name} d={`M${x(from)} ${y}h${width}`} /> : null;
  };
}

interface ActionBarsProps {
  readonly action: TraceAction;
  readonly scale: Scale;
  readonly y: number;
  readonly isCritical: boolean;
}

export function ActionBars({ action, scale, y, isCritical }: ActionBarsProps) {
  const { now } = scale;
  const { queuedAt, attempts, waits, endedAt, dependencies } = action;
  const line = lines(scale, y);
  const end = endedAt ?? now;
  const began = beganAt(action) ?? end;
  /** When the last dependency had ended. */
  const ready = Math.min(began, Math.max(queuedAt, ...dependencies.map((before) => before.endedAt ?? now)));
  return (
    <g class={`status-${action.status}`}>
      {line('dependent', queuedAt, ready)}
      {line('queue', ready, began)}
      {waits.map(({ from, to }, index) => [
        line('waits', from, to ?? end, LEAST_WIDTH),
        line('queue', to ?? end, waits[index + 1]?.from ?? attempts[0]?.startedAt ?? end),
      ])}
      {attempts.map((attempt, index) => {
        const { startedAt, retryDelayMs } = attempt;
        const to = attempt.endedAt ?? end;
        const name = attempt.endedAt === null ? 'runs active' : retryDelayMs === null ? 'runs' : 'runs failed-attempt';
        return [
          line('retry', to, attempts[index + 1]?.startedAt ?? (retryDelayMs === null ? to : end)),
          line(name, startedAt, to, LEAST_WIDTH),
        ];
      })}
      {beganAt(action) === null && endedAt !== null && line('runs', end, end, LEAST_WIDTH)}
      {isCritical && line('critical-line', ready, end, LEAST_WIDTH)}
    </g>
  );
}

interface GenerationsProps {
  readonly trace: Trace;
  readonly scale: Scale;
  readonly y: number;
  /** By iteration: until when the generation is on the critical path. */
  readonly critical: Bound['generations'];
}

/** When the model was writing, what it was writing, and a mark at each closing tag of an action. */
export function Generations({ trace: { source, iterations, blocks, actions }, scale, y, critical }: GenerationsProps) {
  const { x, now } = scale;
  const line = lines(scale, y);
  return (
    <g class="generations">
      {iterations.map(({ iteration, startedAt, generationEnd }) => (
        <g key={iteration}>
          {line(
            generationEnd === null ? 'generation active' : 'generation',
            startedAt,
            generationEnd ?? now,
            LEAST_WIDTH,
          )}
          {line('critical-line', startedAt, critical.get(iteration) ?? startedAt)}
        </g>
      ))}
      {blocks
        .slice(-limits.blocksInMessage)
        .map(({ isResponse, startedAt, endedAt }) =>
          line(isResponse ? 'block block-response' : 'block', startedAt, endedAt ?? now),
        )}
      <path class="tags" d={actions.map(({ queuedAt }) => `M${x(queuedAt).toFixed(1)} ${y + 5}v5`).join('')} />
      {iterations.map(({ iteration, startedAt, generationEnd }) => {
        const name = iterations.length > 1 ? `${source}, iteration ${iteration}` : source;
        return (
          x(generationEnd ?? now) - x(startedAt) > name.length * CHAR_WIDTH && (
            <text key={iteration} x={x(startedAt) + 6} y={y}>
              {name}
            </text>
          )
        );
      })}
    </g>
  );
}
