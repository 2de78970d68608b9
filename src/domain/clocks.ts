/** Minimum intervals of periodic feeds and schedules: two settings, each with a default (H8). */
import { EngineError } from './errors.ts';
import { limits } from './limits.ts';

/** Minimum intervals in milliseconds. */
export interface ClockLimits {
  /** Minimum interval of a periodic feed (F3). */
  readonly feedMinMs: number;
  /** Minimum time between two runs of a schedule (M6). */
  readonly cronMinMs: number;
}

export const DEFAULT_CLOCKS: ClockLimits = { feedMinMs: limits.feedMinMs, cronMinMs: limits.cronMinMs };

interface ClockSettings {
  readonly FEED_MIN_SECONDS?: string | undefined;
  readonly CRON_MIN_SECONDS?: string | undefined;
}

/** @throws EngineError `internal` that names the setting, for anything but a whole number of seconds from 1 */
export function parseClocks({ FEED_MIN_SECONDS: feed, CRON_MIN_SECONDS: cron }: ClockSettings): ClockLimits {
  return {
    feedMinMs: parseSeconds('FEED_MIN_SECONDS', feed) ?? DEFAULT_CLOCKS.feedMinMs,
    cronMinMs: parseSeconds('CRON_MIN_SECONDS', cron) ?? DEFAULT_CLOCKS.cronMinMs,
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
