/** Whether a cron expression is one, and how close together its times are (M6). */
import { Cron, CronPattern } from 'croner';

const DAY_SECONDS = 86_400;
/** Days that are looked at for two that follow each other: four years and a day, which include a leap day. */
const DAYS = 1_462;
const FIRST_NOON = Date.UTC(2027, 0, 1, 12);

/**
 * What is wrong with a schedule's expression, or null.
 *
 * @param minMs least time between two runs; null = any
 */
export function cronIssue(cron: string, minMs: number | null): string | null {
  const fault = cronFault(cron);
  if (fault !== null) return `"${cron}" is not a time by five or six fields: ${fault}`;
  if (minMs === null) return null;
  const least = leastGapSeconds(cron, minMs / 1_000);
  if (least * 1_000 >= minMs) return null;
  return `"${cron}" has times that are ${least} s apart (allowed: at least ${minMs / 1_000} s, the setting CRON_MIN_SECONDS)`;
}

/** Why a time can never come, or null. Judged in UTC: looking for a date takes ten times as long in other time zones. */
function cronFault(cron: string): string | null {
  const fields = cron.split(/\s+/).length;
  if (fields !== 5 && fields !== 6) return `it has ${fields}`;
  try {
    return new Cron(cron, { timezone: 'UTC' }).nextRun() === null ? 'there is no such time' : null;
  } catch (fault) {
    return fault instanceof Error ? fault.message : String(fault);
  }
}

/**
 * The least time between two times of an expression, on the clock's face: daylight saving time is left out of account.
 *
 * Every day that matches has the same times, all combinations of its hours, minutes and seconds. So the least gap is
 * between neighbours in one of the three lists, or from the last time of a day to the first one of the next. No time
 * is looked for, and the work does not depend on the expression.
 *
 * @param wanted a gap between days is looked for only when it would be less than this
 * @returns seconds; Infinity for one time a day that is not less than `wanted` from the next
 */
export function leastGapSeconds(cron: string, wanted: number): number {
  const pattern = new CronPattern(cron, 'UTC');
  const seconds = allowed(pattern.second);
  const minutes = allowed(pattern.minute);
  const hours = allowed(pattern.hour);
  const withinMinute = leastStep(seconds);
  const withinHour = leastStep(minutes) * 60 - span(seconds);
  const withinDay = leastStep(hours) * 3_600 - span(minutes) * 60 - span(seconds);
  const least = Math.min(withinMinute, withinHour, withinDay);
  const overnight = DAY_SECONDS - span(hours) * 3_600 - span(minutes) * 60 - span(seconds);
  return overnight < Math.min(least, wanted) && hasDaysInARow(cron) ? overnight : least;
}

/** What a field allows, in order: croner holds a 1 for each of its values. */
function allowed(field: readonly number[]): number[] {
  return field.flatMap((is, value) => (is === 1 ? [value] : []));
}

function leastStep(values: readonly number[]): number {
  return values.reduce((least, value, at) => Math.min(least, value - (values[at - 1] ?? -Infinity)), Infinity);
}

function span(values: readonly number[]): number {
  return (values.at(-1) ?? 0) - (values[0] ?? 0);
}

function hasDaysInARow(cron: string): boolean {
  const days = new Cron(`0 0 12 ${cron.split(/\s+/).slice(-3).join(' ')}`, { timezone: 'UTC' });
  let before = false;
  for (let day = 0; day < DAYS; day += 1) {
    const matches = days.match(new Date(FIRST_NOON + day * DAY_SECONDS * 1_000));
    if (matches && before) return true;
    before = matches;
  }
  return false;
}
