/** The platform's plan, and whether its limits are enforced (Z3). */
import { describe, expect, test } from 'vitest';
import { parsePlatform, platformIssue } from '../../src/settings/platform.ts';

describe('[Z3] PLATFORM_PLAN and PLATFORM_LIMITS', () => {
  test.each([
    [{}, false, { plan: 'paid', enforced: false, hasLimits: true }],
    [{ PLATFORM_PLAN: ' Free ' }, false, { plan: 'free', enforced: false, hasLimits: true }],
    [{}, true, { plan: 'paid', enforced: false, hasLimits: false }],
    [{ PLATFORM_LIMITS: '' }, true, { plan: 'paid', enforced: false, hasLimits: false }],
    [{ PLATFORM_LIMITS: 'paid' }, true, { plan: 'paid', enforced: true, hasLimits: true }],
    [{ PLATFORM_LIMITS: 'free', PLATFORM_PLAN: 'paid' }, true, { plan: 'free', enforced: true, hasLimits: true }],
    [{ PLATFORM_LIMITS: 'free' }, false, { plan: 'paid', enforced: false, hasLimits: true }],
  ] as const)('%o on a local system: %s', (variables, isLocal, expected) => {
    expect(parsePlatform(variables, isLocal)).toEqual(expected);
  });

  test('an unknown plan is refused with the nearest one', () => {
    expect(() => parsePlatform({ PLATFORM_LIMITS: 'payed' }, true)).toThrow(
      'PLATFORM_LIMITS must be free or paid, found "payed"; did you mean "paid"?',
    );
    expect(() => parsePlatform({ PLATFORM_PLAN: 'enterprise' }, false)).toThrow(
      /^PLATFORM_PLAN must be free or paid, found "enterprise"$/,
    );
  });

  test('a deployment reports PLATFORM_LIMITS, because it has no effect there', () => {
    expect(platformIssue({ PLATFORM_LIMITS: 'paid' }, false)).toContain('PLATFORM_PLAN');
    expect(platformIssue({ PLATFORM_LIMITS: 'paid' }, true)).toBeNull();
    expect(platformIssue({}, false)).toBeNull();
  });
});
