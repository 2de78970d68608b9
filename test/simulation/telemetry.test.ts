/** Generated histories whose traces are exported (O1), to a collector that is away and loses answers. */
import { expect, test } from 'vitest';
import { historyOf } from './arbitrary.ts';
import { exportingHistoryOf } from './exporting.ts';
import type { Fault } from './history.ts';
import type { Answer } from './worker.ts';
import { Thread } from './pool.ts';

const HISTORIES = 80;
test(`[O1] ${HISTORIES} histories violate no invariant, and every span arrives`, async () => {
  const found: string[] = [];
  let spans = 0;
  let repeats = 0;
  await using thread = new Thread();
  for (let seed = 1; seed <= HISTORIES; seed += 1) {
    const { violations, seen }: Answer = await thread.run(exportingHistoryOf(seed), { isDetailed: true });
    for (const { invariant, what } of violations) found.push(`seed ${seed}: ${invariant}: ${what.slice(0, 600)}`);
    const { expected = [], received = [] } = seen?.exported ?? {};
    spans += expected.length;
    repeats += received.length - new Set(received.map(({ spanId }) => spanId)).size;
  }
  expect(found).toEqual([]);
  expect(spans).toBeGreaterThan(300);
  // lost answers and crashes
  expect(repeats).toBeGreaterThan(0);
});

test('[O1] the invariant notices a collector that loses spans', async () => {
  await using thread = new Thread();
  const history = historyOf(1);
  const loses: Fault = { type: 'collector', at: 0, forMs: 100_000_000, works: true, loses: true };
  const { violations } = await thread.run({ ...history, faults: [loses] });
  expect(violations.map(({ invariant }) => invariant)).toContain('exported spans');
});
