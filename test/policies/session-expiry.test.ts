import { expect, test } from 'vitest';
import { EngineError } from '../../src/domain/errors.ts';
import { limits } from '../../src/domain/limits.ts';
import { parseSessionExpiry } from '../../src/policies/session-expiry.ts';

test.each([
  [undefined, limits.sessionExpiryMs],
  [' ', limits.sessionExpiryMs],
  ['90', 90_000],
  ['2m', 120_000],
  ['1.5 h', 5_400_000],
  ['7d', 7 * 86_400_000],
])('[H8] SESSION_EXPIRY=%s', (text, ms) => {
  expect(parseSessionExpiry(text)).toBe(ms);
});

test.each(['never', '-1', '30', '4000d', '1w', '1e9'])('[H8] SESSION_EXPIRY=%s is refused', (text) => {
  expect(() => parseSessionExpiry(text)).toThrow(EngineError);
});
