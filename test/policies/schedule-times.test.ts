import { expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { nextTime, nextTimes, withNextTimes } from '../../src/policies/schedule-times.ts';

const at = (time: string): number => Date.parse(`2026-01-01T${time}Z`);
const timezone = 'UTC';

test.each([
  ['every second', '* * * * * *', '12:00:00', '12:00:00', '12:01:00'],
  ['twice in a minute', '10,40 * * * * *', '12:00:10', '12:00:10', '12:01:10'],
  ['every minute, handled late', '* * * * *', '12:00:02', '12:00:00', '12:01:00'],
  ['every minute, after a pause', '* * * * *', '12:10:30', '12:00:00', '12:11:00'],
  ['every hour', '0 * * * *', '12:00:00', '12:00:00', '13:00:00'],
])('[M6] two runs of a schedule are at least a minute apart: %s', (_what, cron, now, last, next) => {
  expect(nextTime({ cron, timezone }, at(now), at(last), limits.cronMinMs)).toBe(at(next));
});

test('[M6] the operator can allow shorter intervals', () => {
  const every = { cron: '* * * * * *', timezone };
  expect(nextTime(every, at('12:00:00'), at('12:00:00'), 5_000)).toBe(at('12:00:05'));
  expect(nextTime(every, at('12:00:00'), null, limits.cronMinMs)).toBe(at('12:00:01'));
});

const daily = { workflow: 'w', cron: '0 3 * * *', timezone: 'UTC', inputs: {} };

test('[M6] an unchanged schedule keeps its next time; a changed or new schedule gets a new one', () => {
  const before = [{ ...daily, nextAt: at('01:00:00') }];
  expect(withNextTimes([daily], before, at('00:00:00'), 60_000)).toEqual([{ ...daily, nextAt: at('01:00:00') }]);
  expect(withNextTimes([{ ...daily, inputs: { a: 1 } }], before, at('00:00:00'), 60_000)[0]).toMatchObject({
    nextAt: at('01:00:00'),
  });
  expect(withNextTimes([{ ...daily, cron: '0 5 * * *' }], before, at('00:00:00'), 60_000)[0]).toMatchObject({
    nextAt: at('05:00:00'),
  });
  expect(withNextTimes([{ ...daily, workflow: 'v' }], before, at('00:00:00'), 60_000)[0]).toMatchObject({
    nextAt: at('03:00:00'),
  });
});

test('[M6] a schedule without future times is not listed', () => {
  expect(withNextTimes([{ ...daily, cron: '0 0 30 2 *' }], [], at('00:00:00'), 60_000)).toEqual([]);
});

test('[M6] the list of future times begins with the stored next time', () => {
  const day = 86_400_000;
  expect(nextTimes(daily, at('03:00:00'), 3, 60_000)).toEqual([
    at('03:00:00'),
    at('03:00:00') + day,
    at('03:00:00') + 2 * day,
  ]);
});
