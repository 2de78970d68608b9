/**
 * The simulation as a test: stored histories, and new ones from a fixed seed. `npm run test:long` runs more of them
 * (../long/histories.test.ts), and `npm run test:simulation` others.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { Thread } from './pool.ts';
import { historyText, violationsText } from './print/print.ts';
import { readHistory } from './stored.ts';
import { requireHistories } from './require-histories.ts';

const FOLDER = join(import.meta.dirname, 'histories');

const thread = new Thread();
afterAll(async () => await thread[Symbol.asyncDispose]());

const files = readdirSync(FOLDER).filter((name) => name.endsWith('.json'));
for (const file of files) {
  const { name, history } = readHistory(join(FOLDER, file));
  test(`${name} (${file})`, async () => {
    const { violations, seen } = await thread.run(history, { isDetailed: true });
    if (violations.length > 0) expect.fail(`${violationsText(violations)}\n\n${historyText(history, seen)}`);
  });
}

test('there are stored histories', () => {
  expect(files.length).toBeGreaterThan(30);
});

test('200 histories violate no invariant', async () => {
  await requireHistories(1, 200);
});
