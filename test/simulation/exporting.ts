/** Histories whose traces are exported (O1): to a collector that is away and loses answers, from hosts that end meanwhile. */
import { historyOf } from './arbitrary.ts';
import type { Fault, History } from './history.ts';

const AWAY_MS = [0, 0, 5, 50, 1_500, 20_000, 600_000] as const;
/** Hosts end while an export is under way: each export takes longer than a ninth of this. */
const EVICTED_EACH_MS = 1_070;
const EVICTIONS = 8;

/** The history of the seed, with failures of the collector, and with evictions. */
export function exportingHistoryOf(seed: number): History {
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
