/** The whole system under SIGKILL, with real processes; `npm run test:chaos` runs a longer version. */
import { expect, test } from 'vitest';
import { runChaos } from '../chaos/chaos.ts';

test('[J1] [J2] [J3] [J4] [S7] [S10] after kills of Worker and runner during histories, every invariant holds', async () => {
  const report = await runChaos({ histories: 8, seed: 20_261_121, progress: () => undefined });
  expect(report.findings).toEqual([]);
  expect(report.histories).toBe(8);
  expect(report.kills).toBeGreaterThanOrEqual(3);
  expect(report.runs).toBeGreaterThanOrEqual(8);
  expect(report.recovered).toBeGreaterThan(0);
}, 300_000);
