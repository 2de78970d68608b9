/**
 * Due times of scheduled workflows (M6), and the minimum time between their runs. Pure; times are epoch milliseconds.
 */
import { Cron } from 'croner';
import type { JsonObject } from '../domain/json.ts';
import type { WorkflowDefinition } from '../domain/manifests/workflow.ts';

interface Times {
  readonly cron: string;
  /** IANA name. */
  readonly timezone: string;
}

/** A workflow that is started by time. */
export interface Schedule extends Times {
  readonly workflow: string;
  readonly inputs: JsonObject;
}

export interface KeptSchedule extends Schedule {
  readonly nextAt: number;
}

/** The schedules among these workflows. */
export function schedulesOf(workflows: readonly WorkflowDefinition[]): Schedule[] {
  return workflows.flatMap(({ name, trigger }): Schedule[] => {
    if (trigger.type !== 'scheduled') return [];
    const { cron, timezone, inputs } = trigger;
    return [{ workflow: name, cron, timezone, inputs }];
  });
}

/** The schedules with their next times. An unchanged one keeps its next time; one that is never due is left out. */
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

/** The next `count` times of a schedule, beginning with the known first one. */
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
 * The next time after `after` that is at least `minMs` after `last`. Times in between are skipped: a schedule that was
 * accepted under an older minimum continues with the current one.
 *
 * @param last the previous time, or null
 * @returns epoch milliseconds; null if there is no further time, or none can be computed
 */
export function nextTime({ cron, timezone }: Times, after: number, last: number | null, minMs: number): number | null {
  const from = last === null ? after : Math.max(after, last + minMs - 1);
  try {
    return new Cron(cron, { timezone }).nextRun(new Date(from))?.getTime() ?? null;
  } catch {
    return null;
  }
}
