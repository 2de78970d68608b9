/** The axis of the timeline: its length while a run grows, and its ticks. */
import { duration } from '../parts/format.ts';

const GROWTH = 1.3;
const SHORTEST_MS = 400;

/** Milliseconds that the axis shows. While the run is live, it grows in steps, so that bars do not shrink in each frame. */
export function axisMs(totalMs: number, isLive: boolean): number {
  if (!isLive) return Math.max(1, totalMs) * 1.02;
  const steps = Math.log(Math.max(1, totalMs / SHORTEST_MS)) / Math.log(GROWTH);
  return SHORTEST_MS * GROWTH ** Math.ceil(steps + 0.1);
}

const STEPS_MS = [
  ...[1, 10, 100, 1_000].flatMap((unit) => [unit, 2 * unit, 5 * unit]),
  ...[1 / 6, 1 / 2, 1, 2, 5, 10, 30, 60, 120, 360, 1_440, 7_200].map((minutes) => minutes * 60_000),
];

interface Tick {
  readonly ms: number;
  readonly label: string;
}

/** @param most greatest number of ticks after 0 */
export function ticks(lengthMs: number, most: number): Tick[] {
  const step = STEPS_MS.find((each) => lengthMs / each <= most) ?? lengthMs;
  return Array.from({ length: Math.floor(lengthMs / step) + 1 }, (_, index) => ({
    ms: index * step,
    label: duration(index * step).replace(/\.00| 0 \w+$/, ''),
  }));
}
