import { vi } from 'vitest';

/** Only ends a test that hangs: a busy machine may take long. */
const PATIENT_MS = 120_000;
const EVERY_MS = 20;

/**
 * Repeats a check until it passes. With fake timers, it advances them by its interval.
 *
 * @returns what the check returned at last
 * @throws what the check has thrown last, after two minutes
 */
export async function eventually<T>(check: () => T | Promise<T>): Promise<T> {
  return await vi.waitFor(check, { timeout: PATIENT_MS, interval: EVERY_MS });
}
