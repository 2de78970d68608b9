/** Generated histories whose traces are exported (O1), to a collector that is away and loses answers. */
import { expect, test } from 'vitest';
import { historyOf } from './arbitrary.ts';
import type { Fault, History } from './history.ts';
import type { Answer } from './worker.ts';
import { Thread } from './pool.ts';

const HISTORIES = 80;
const AWAY_MS = [0, 0, 5, 50, 1_500, 20_000, 600_000] as const;

/** Hosts end while an export is under way: about each export takes longer than a ninth of this. */
const EVICTED_EACH_MS = 1_070;
const EVICTIONS = 8;

/** The history of the seed, with failures of the collector, and with evictions. */
function exporting(seed: number): History {
  const history = historyOf(seed);
  const failure = (nth: number): Fault => ({
    type: 'collector',
    at: (seed * 97 * nth) % 4_000,
    forMs: AWAY_MS[(seed * 3 + nth) % AWAY_MS.length] ?? 0,
    works: (seed + nth) % 2 === 0,
  });
  const evictions = Array.from({ length: seed % 2 === 0 ? EVICTIONS : 0 }, (_, nth): Fault => ({
    type: 'eviction',
    at: (nth + 1) * EVICTED_EACH_MS + ((seed * 31) % 200),
    keeps: seed % 4 === 0 ? 1 : 0,
  }));
  const failures = seed % 3 === 0 ? [failure(1), failure(2)] : [failure(1)];
  return { ...history, faults: [...history.faults, ...failures, ...evictions] };
}

test(`[O1] ${HISTORIES} histories violate no invariant, and every span arrives`, async () => {
  const found: string[] = [];
  let spans = 0;
  let repeats = 0;
  const check = async (first: number): Promise<void> => {
    await using thread = new Thread();
    for (let seed = first; seed <= HISTORIES; seed += 2) {
      const { violations, seen }: Answer = await thread.run(exporting(seed), { isDetailed: true });
      for (const { invariant, what } of violations) found.push(`seed ${seed}: ${invariant}: ${what.slice(0, 600)}`);
      const { expected = [], received = [] } = seen?.exported ?? {};
      spans += expected.length;
      repeats += received.length - new Set(received.map(({ spanId }) => spanId)).size;
    }
  };
  await Promise.all([check(1), check(2)]);
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
