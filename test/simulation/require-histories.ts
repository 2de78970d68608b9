/** Generated histories as a test. */
import { expect } from 'vitest';
import { historyOf } from './arbitrary.ts';
import { minimalOf } from './failure.ts';
import { checkSeeds } from './pool.ts';

/** The search for a smaller history must not let the test wait for long. */
const MOST_SHRINK_MS = 20_000;

/** Fails with the smallest history that it finds, if one of these seeds violates an invariant. */
export async function requireHistories(first: number, count: number): Promise<void> {
  const { done, failures } = await checkSeeds({ first, count, mostInvariants: 1 });
  const [failure] = failures;
  if (failure !== undefined) {
    const { seed, invariant } = failure;
    const { text } = await minimalOf(historyOf(seed), invariant, { mostMs: MOST_SHRINK_MS });
    expect.fail(`${text}\n\nRepeat it: npm run test:simulation -- 1 ${seed}`);
  }
  expect(done).toBe(count);
}
