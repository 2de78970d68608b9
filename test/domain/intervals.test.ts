import { expect, test } from 'vitest';
import { DEFAULT_INTERVALS, parseIntervals } from '../../src/domain/intervals.ts';

test('[H8] the defaults are 5 s for feeds and a minute for schedules', () => {
  expect(parseIntervals({})).toEqual({ feedMinMs: 5_000, cronMinMs: 60_000 });
  expect(parseIntervals({ FEED_MIN_SECONDS: ' ', CRON_MIN_SECONDS: '' })).toEqual(DEFAULT_INTERVALS);
  expect(parseIntervals({ FEED_MIN_SECONDS: '1', CRON_MIN_SECONDS: '86400' })).toEqual({
    feedMinMs: 1_000,
    cronMinMs: 86_400_000,
  });
});

test.each(['0', '-1', 'x', '1.5', '86401', '5s'])('[H8] %s seconds are refused', (text) => {
  for (const name of ['FEED_MIN_SECONDS', 'CRON_MIN_SECONDS'])
    expect(() => parseIntervals({ [name]: text })).toThrow(
      `${name} must be a whole number of seconds from 1 to 86400, found "${text}"`,
    );
});
