/** The whole system under SIGKILL, with real processes; `npm run test:chaos` runs a longer version. */
import { expect, test } from 'vitest';
import { runChaos } from '../chaos/chaos.ts';
import type { Kill } from '../chaos/kills.ts';

/** Soon after work has begun, so that runs are interrupted whatever the histories are. */
const KILLS: readonly Kill[] = [
  { victim: 'worker', afterEvents: 10 },
  { victim: 'both', afterEvents: 15 },
  { victim: 'runner', afterEvents: 10 },
];

test('[J1] [J2] [J3] [J4] [S7] [S10] [C2] [C3] after kills of Worker and runner during histories, every invariant holds', async () => {
  const report = await runChaos({ histories: 8, seed: 20_262_489, kills: KILLS, progress: () => undefined });
  expect(report.findings).toEqual([]);
  expect(report.histories).toBe(8);
  expect(report.kills).toBeGreaterThanOrEqual(2);
  expect(report.runs).toBeGreaterThanOrEqual(8);
  expect(report.recovered).toBeGreaterThan(0);
  expect(report.results).toBeGreaterThan(0);
  expect(report.files).toBeGreaterThan(0);
}, 300_000);
