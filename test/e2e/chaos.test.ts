/** The whole system under SIGKILL, with real processes; `npm run test:chaos` runs a longer version. */
import { expect, test } from 'vitest';
import { runChaos } from '../chaos/chaos.ts';

test('[J1] [J2] [J3] [J4] [S7] [S10] after four kills of Worker and runner nothing is lost, and no unsafe action ran twice', async () => {
  const report = await runChaos({ kills: 4, runsPerKill: 2, seed: 20_261_121, progress: () => undefined });
  expect(report.faults).toEqual([]);
  expect(report).toMatchObject({ kills: 4, runs: 8, completed: 8 });
  expect(report.recovered).toBeGreaterThan(0);
}, 300_000);
