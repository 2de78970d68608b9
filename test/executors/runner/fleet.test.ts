/** The runners as one session uses them: the files that its jobs left on one of them (R7, C7). */
import { expect, test } from 'vitest';

import { Fleet, type FleetRunner } from '../../../src/executors/runner/fleet.ts';
import { RunnerRecord } from '../../../src/executors/runner/record.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { SimulatedFleet } from '../../support/simulated-fleet.ts';

const ONE_MEGABYTE = 1_000_000;

test('[R7] files that a job left on its runner need no transfer, although the session got them after it chose', async () => {
  const clock = new VirtualClock();
  const simulated = new SimulatedFleet(clock);
  const nodes = [simulated.runner(), simulated.runner()];
  const fleet = new Fleet({
    runners: nodes.map(({ url }) => ({ url, labels: [] })),
    connect: (url, reports) => {
      const node = nodes.find((one) => one.url === url);
      if (node === undefined) throw new Error(url);
      return node.client(reports);
    },
    recordOf: () => new RunnerRecord(),
    clock,
  });
  function tell(runner: FleetRunner, waitMs: number): void {
    runner.record.asking(clock.now());
    const jobs = { running: 1, queued: 0, max_running: 1, job_ms: waitMs, first_ms: waitMs };
    runner.record.healthAnswered({ status: 'healthy', executors: ['python'], jobs }, 1, clock.now());
    runner.record.alive.at = clock.now();
  }
  async function next(sha256: string): Promise<FleetRunner | null> {
    const file = { path: 'state', sha256, size: ONE_MEGABYTE, executable: false, modifiedAt: clock.now() };
    const workspace = { files: [file], maxBytes: 2 * ONE_MEGABYTE, read: () => Promise.reject(new Error('not read')) };
    const needs = { session: 'ses_1', kind: 'python', workspace } as const;
    return await fleet.choose(needs, { tried: new Set(), submits: false });
  }
  for (const runner of fleet.runners) tell(runner, 0);
  const first = await next('a');
  const other = fleet.runners.find((runner) => runner !== first);
  if (first === null || other === undefined) throw new Error('no runner was chosen');

  // The job changes the file: it left `b` on its runner, and the session gets it later.
  clock.advance(100);
  fleet.keep('ses_1', first, ['b']);
  tell(first, 80);
  tell(other, 0);
  expect(await next('b')).toBe(first);

  // Another version of the file, which neither of them has.
  clock.advance(100);
  tell(first, 200);
  tell(other, 0);
  expect(await next('c')).toBe(other);
});
