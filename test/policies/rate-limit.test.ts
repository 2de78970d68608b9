import { expect, test } from 'vitest';
import { EngineError } from '../../src/domain/errors.ts';
import { parseRateLimit, rateLimited, takeRequest } from '../../src/policies/rate-limit.ts';
import { problemResponse } from '../../src/http/problem.ts';

test.each([1, 7, 600])('%d requests a minute: all at once, then one per interval', (perMinute) => {
  let emptyAt = 0;
  const now = 1_000_000;
  const take = (at: number): number | null => {
    const taken = takeRequest(emptyAt, { perMinute, now: at });
    ({ emptyAt } = taken);
    return taken.retryAfterMs;
  };
  for (let n = 0; n < perMinute; n += 1) expect(take(now)).toBeNull();
  const waitMs = take(now) ?? 0;
  expect(waitMs).toBeGreaterThan(0);
  expect(waitMs).toBeLessThanOrEqual(Math.ceil(60_000 / perMinute));
  expect(take(now + waitMs - 2)).not.toBeNull();
  expect(take(now + waitMs)).toBeNull();
  expect(take(now + waitMs)).not.toBeNull();
});

test('[H4] a refusal is 429 with the number of seconds to wait', async () => {
  const response = problemResponse(rateLimited('assistant', 5, 12_001));
  expect(response.status).toBe(429);
  expect(response.headers.get('retry-after')).toBe('13');
  expect(await response.json()).toMatchObject({ code: 'rate_limited', retry_after_ms: 12_001 });
});

test('[H8] RATE_LIMIT is a number or unset', () => {
  expect([undefined, '', ' '].map(parseRateLimit)).toEqual([null, null, null]);
  expect(parseRateLimit('90')).toBe(90);
  for (const wrong of ['many', '0', '-1', 'NaN']) expect(() => parseRateLimit(wrong)).toThrow(EngineError);
});
