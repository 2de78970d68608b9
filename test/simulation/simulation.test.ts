/**
 * The simulation as a test: stored histories, and a thousand new ones from a fixed seed. Others are found with
 * `npm run test:simulation`.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { historyOf } from './arbitrary.ts';
import { minimalOf } from './failure.ts';
import { Thread, checkSeeds } from './pool.ts';
import { historyText, violationsText } from './print/print.ts';
import { readHistory } from './stored.ts';

const FOLDER = join(import.meta.dirname, 'histories');
const FIRST_SEED = 1;
const HISTORIES = 1_000;
/** The search for a smaller history must not let the test wait for long. */
const MOST_SHRINK_MS = 20_000;

for (const file of readdirSync(FOLDER).filter((name) => name.endsWith('.json'))) {
  const { name, history } = readHistory(join(FOLDER, file));
  test(`${name} (${file})`, async () => {
    await using thread = new Thread();
    const { violations, seen } = await thread.run(history, { isDetailed: true });
    if (violations.length > 0) expect.fail(`${violationsText(violations)}\n\n${historyText(history, seen)}`);
  });
}

test(`${HISTORIES} histories violate no invariant`, async () => {
  const { done, failures } = await checkSeeds({ first: FIRST_SEED, count: HISTORIES, mostInvariants: 1 });
  const [failure] = failures;
  if (failure !== undefined) {
    const { seed, invariant } = failure;
    const { text } = await minimalOf(historyOf(seed), invariant, { mostMs: MOST_SHRINK_MS });
    expect.fail(`${text}\n\nRepeat it: npm run test:simulation -- 1 ${seed}`);
  }
  expect(done).toBe(HISTORIES);
});
