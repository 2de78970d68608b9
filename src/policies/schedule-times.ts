/** When scheduled workflows are due (M6), and how close together their runs may be. Pure; times are epoch milliseconds. */
import { Cron } from 'croner';
import type { JsonObject } from '../domain/json.ts';
import type { WorkflowDefinition } from '../domain/manifest.ts';

interface Times {
  readonly cron: string;
  /** IANA. */
  readonly timezone: string;
}

/** A workflow that the clock starts. */
export interface Schedule extends Times {
  readonly workflow: string;
  readonly inputs: JsonObject;
}

export interface KeptSchedule extends Schedule {
  readonly nextAt: number;
}

/** What of these workflows the clock starts. */
export function schedulesOf(workflows: readonly WorkflowDefinition[]): Schedule[] {
  return workflows.flatMap(({ name, trigger }): Schedule[] => {
    if (trigger.type !== 'scheduled') return [];
    const { cron, timezone, inputs } = trigger;
    return [{ workflow: name, cron, timezone, inputs }];
  });
}

/** The schedules with their next times: an unchanged one keeps the time that it has; one that is never due is left out. */
export function withNextTimes(
  schedules: readonly Schedule[],
  before: readonly KeptSchedule[],
  now: number,
  minMs: number,
): KeptSchedule[] {
  const known = new Map(before.map((kept) => [kept.workflow, kept]));
  return schedules.flatMap((schedule) => {
    const kept = known.get(schedule.workflow);
    const isSame = kept?.cron === schedule.cron && kept.timezone === schedule.timezone;
    const nextAt = isSame ? kept.nextAt : nextTime(schedule, now, null, minMs);
    return nextAt === null ? [] : [{ ...schedule, nextAt }];
  });
}

/** The next `count` times of a schedule, the first of which is known. */
export function nextTimes(schedule: Times, first: number, count: number, minMs: number): number[] {
  const times = [first];
  for (let last = first; times.length < count;) {
    const next = nextTime(schedule, last, last, minMs);
    if (next === null) break;
    times.push(next);
    last = next;
  }
  return times;
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
