/** When a soak test kills and measures, from its length. Pure. */
import type { Victim } from '../chaos/system.ts';
import type { Random } from './random.ts';

export interface Segment {
  /** How long sessions come and go until the next checkpoint, in milliseconds. */
  readonly ms: number;
  readonly kills: readonly { readonly victim: Victim; readonly afterMs: number }[];
  /** The Worker and the runner start again before it. */
  readonly isFresh: boolean;
}

const MINUTE_MS = 60_000;
/** A checkpoint waits for open runs, for objects to be evicted and for caches to expire. */
const CHECKPOINT_MS = 25_000;
const LEAST_SEGMENT_MS = 10_000;
/** Between two checkpoints. */
const SEGMENT_MS = 5 * MINUTE_MS;
const LEAST_SEGMENTS = 3;
/** A kill for each of so many milliseconds in the part with kills. */
const KILL_EVERY_MS = 100_000;

/**
 * Three parts: a warm-up without kills, a quarter of the time with them, and the rest without, in which memory can be
 * compared because no process starts again.
 */
export function planOf(minutes: number, random: Random): readonly Segment[] {
  const count = Math.max(LEAST_SEGMENTS, Math.round((minutes * MINUTE_MS) / SEGMENT_MS));
  const ms = Math.max(LEAST_SEGMENT_MS, Math.round((minutes * MINUTE_MS) / count - CHECKPOINT_MS));
  const withKills = Math.max(1, Math.floor(count / 4));
  const victims: readonly Victim[] = ['worker', 'runner', 'both'];
  return Array.from({ length: count }, (_, at) => {
    const isKilled = at >= 1 && at <= withKills;
    const kills = Math.max(victims.length, Math.round(ms / KILL_EVERY_MS));
    return {
      ms,
      isFresh: at === withKills + 1,
      kills: isKilled
        ? Array.from({ length: kills }, (_kill, n) => ({
            victim: n < victims.length ? (victims[n] ?? 'both') : random.pick(victims),
            afterMs: Math.round(((n + random.next()) * ms) / kills),
          }))
        : [],
    };
  });
}
