/** When scheduled workflows are due (M6), and how close together their runs may be. */
import { Cron } from 'croner';

interface Times {
  readonly cron: string;
  readonly timezone: string;
}

/**
 * The next time after `after` that is at least `minMs` after `last`. Times in between are left out: a schedule that was
 * taken before its expression would have been refused goes on at the least time.
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
