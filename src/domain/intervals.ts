/** Minimum intervals of periodic feeds and schedules: two settings, each with a default (H8). */
import { EngineError } from './errors.ts';
import { limits } from './limits.ts';

/** Minimum intervals in milliseconds. */
export interface IntervalLimits {
  /** Minimum interval of a periodic feed (F3). */
  readonly feedMinMs: number;
  /** Minimum time between two runs of a schedule (M6). */
  readonly cronMinMs: number;
}

export const DEFAULT_INTERVALS: IntervalLimits = { feedMinMs: limits.feedMinMs, cronMinMs: limits.cronMinMs };

interface IntervalSettings {
  readonly FEED_MIN_SECONDS?: string | undefined;
  readonly CRON_MIN_SECONDS?: string | undefined;
}

/** @throws EngineError `internal` that names the setting, if it is not a whole number of seconds in range */
export function parseIntervals({ FEED_MIN_SECONDS: feed, CRON_MIN_SECONDS: cron }: IntervalSettings): IntervalLimits {
  return {
    feedMinMs: parseSeconds('FEED_MIN_SECONDS', feed) ?? DEFAULT_INTERVALS.feedMinMs,
    cronMinMs: parseSeconds('CRON_MIN_SECONDS', cron) ?? DEFAULT_INTERVALS.cronMinMs,
  };
}

/** @returns milliseconds; null if not set */
function parseSeconds(name: string, text: string | undefined): number | null {
  const written = text?.trim() ?? '';
  if (written === '') return null;
  const seconds = Number(written);
  if (Number.isInteger(seconds) && seconds >= 1 && seconds <= limits.clockMinMostSeconds) return seconds * 1_000;
  throw new EngineError(
    'internal',
    `${name} must be a whole number of seconds from 1 to ${limits.clockMinMostSeconds}, found "${written.slice(0, 20)}"`,
  );
}
