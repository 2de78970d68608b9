/** The whole system under SIGKILL, with real processes; the long form is `npm run test:chaos`. */
import { expect, test } from 'vitest';
import { runChaos } from '../chaos/chaos.ts';

test('[J1] [J2] [J3] [J4] [S7] [S10] ten kills of Worker and runner: nothing is lost, nothing unsafe done twice', async () => {
  const report = await runChaos({ kills: 10, seed: 20_261_121, progress: () => undefined });
  expect(report.faults).toEqual([]);
  expect(report).toMatchObject({ kills: 10, runs: 10, completed: 10 });
  expect(report.recovered).toBeGreaterThan(0);
}, 300_000);
