/** Validates cron expressions and their frequency (M6). */
import { Cron, CronPattern } from 'croner';

const DAY_SECONDS = 86_400;
/** Number of days searched for consecutive days: four years and a day, which include a leap day. */
const DAYS = 1_462;
const FIRST_NOON = Date.UTC(2027, 0, 1, 12);

/**
 * The issue of a schedule's expression, or null.
 *
 * @param minMs minimum time between two runs; null = no minimum
 */
export function cronIssue(cron: string, minMs: number | null): string | null {
  const fault = expressionIssue(cron);
  if (fault !== null) return `"${cron}" is not a cron expression with five or six fields: ${fault}`;
  if (minMs === null) return null;
  const least = leastGapSeconds(cron, minMs / 1_000);
  if (least * 1_000 >= minMs) return null;
  return `"${cron}" has times only ${least} s apart (allowed: at least ${minMs / 1_000} s, the setting CRON_MIN_SECONDS)`;
}

/**
 * Returns why the expression never matches, or null. Uses UTC, because searching for a date is ten times slower in other time zones.
 */
function expressionIssue(cron: string): string | null {
  const fields = cron.split(/\s+/).length;
  if (fields !== 5 && fields !== 6) return `it has ${fields} fields`;
  try {
    return new Cron(cron, { timezone: 'UTC' }).nextRun() === null ? 'it never matches a time' : null;
  } catch (fault) {
    return fault instanceof Error ? fault.message : String(fault);
  }
}

/**
 * The minimum gap between two times of an expression on the clock face, ignoring daylight saving time.
 *
 * Every matching day has the same times: all combinations of its hours, minutes and seconds. The minimum gap is
 * therefore between neighbours in one of the three lists, or from the last time of a day to the first one of the next
 * day. No times are enumerated, so the cost does not depend on the expression.
 *
 * @param wanted gaps between days are computed only if they could be less than this
 * @returns seconds; Infinity for one time per day that is at least `wanted` from the next
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

/** The allowed values of a field, in order: croner stores a 1 for each value. */
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
