/** When scheduled workflows are due (M6), and how close together their runs may be. */
import { Cron } from 'croner';
import { EngineError } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';

interface Times {
  readonly cron: string;
  readonly timezone: string;
}

/**
 * Reads `CRON_MIN_SECONDS`, the least time between two runs of a schedule.
 *
 * @returns milliseconds; a minute where nothing is set
 * @throws EngineError `internal` for anything but a number of seconds from 1
 */
export function parseCronMinimum(text: string | undefined): number {
  const written = text?.trim() ?? '';
  if (written === '') return limits.cronMinMs;
  const seconds = Number(written);
  if (Number.isInteger(seconds) && seconds >= 1 && seconds <= limits.cronMinMostSeconds) return seconds * 1_000;
  throw new EngineError(
    'internal',
    `CRON_MIN_SECONDS must be a number of seconds from 1 to ${limits.cronMinMostSeconds}, found "${written.slice(0, 20)}"`,
  );
}

/**
 * The next time after `after` that is at least `minMs` after `last`. Times in between are left out.
 *
 * @param last the time before, or null where there was none
 * @returns epoch milliseconds; null when there is none, or none can be told any more
 */
export function nextTime({ cron, timezone }: Times, after: number, last: number | null, minMs: number): number | null {
  const from = last === null ? after : Math.max(after, last + minMs - 1);
  try {
    return new Cron(cron, { timezone }).nextRun(new Date(from))?.getTime() ?? null;
  } catch {
    return null;
  }
}
