/** Random losses of runners while they work: every job settles, and runs as often as it may (S7, R7). */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';

import { RunnerError } from '../../../src/executors/runner/error.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { SimulatedFleet } from '../../support/simulated-fleet.ts';

const TIMEOUT_MS = 60_000;

const runners = fc.array(
  fc.record({
    /** In addition to that of the fleet. */
    furtherMs: fc.constantFrom(0, 0, 150),
    places: fc.integer({ min: 1, max: 4 }),
    queued: fc.integer({ min: 0, max: 8 }),
    jobMs: fc.constantFrom(20, 300, 2_500),
    sleeps: fc.boolean(),
  }),
  { minLength: 1, maxLength: 4 },
);
const jobs = fc.array(
  fc.record({
    atMs: fc.integer({ min: 0, max: 4_000 }),
    session: fc.integer({ min: 0, max: 5 }),
    movable: fc.boolean(),
  }),
  { minLength: 1, maxLength: 60 },
);
/** A runner dies, and starts again later; null: not any more. */
const losses = fc.array(
  fc.record({
    atMs: fc.integer({ min: 0, max: 6_000 }),
    runner: fc.nat(),
    downMs: fc.option(fc.integer({ min: 0, max: 20_000 })),
  }),
  { maxLength: 10 },
);

test('[S7] [R7] every job settles in its time; an unsafe one starts at most once, another one at most once on each runner', async () => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(2, 900), runners, jobs, losses, async (nearMs, kinds, submitted, deaths) => {
      const clock = new VirtualClock();
      const fleet = new SimulatedFleet(clock);
      const all = kinds.map(({ sleeps, furtherMs, ...kind }) =>
        fleet.runner({ ...kind, roundTripMs: nearMs + furtherMs, ...(sleeps ? { coldStartMs: 2_000 } : {}) }),
      );
      const pools = new Map(
        submitted.map(({ session }) => [session, fleet.poolOf(all, session % 2 === 0 ? 'a' : 'b')]),
      );
      for (const { atMs, runner, downMs } of deaths) {
        const victim = all[runner % all.length];
        clock.schedule(atMs, () => victim?.kill());
        if (downMs !== null) clock.schedule(atMs + downMs, () => victim?.restart());
      }
      const done = submitted.map(({ atMs, session, movable }) => {
        const { promise, resolve } = Promise.withResolvers<ReturnType<SimulatedFleet['submit']>>();
        clock.schedule(atMs, () => {
          const pool = pools.get(session) ?? fleet.poolOf(all);
          resolve(fleet.submit(pool, `ses_${session}`, { movable, limits: { timeoutMs: TIMEOUT_MS, memoryMb: null } }));
        });
        return promise.then((job) => ({ ...job, movable, job }));
      });
      await fleet.pass(6_000, 20);
      const given = await Promise.all(done);
      // waits and losses on each of the runners
      await fleet.untilEnded(
        given.map(({ job }) => job),
        TIMEOUT_MS + all.length * 40_000,
        50,
      );
      for (const { id, movable, job } of given) {
        const starts = all.map(({ started }) => started.filter((start) => start.id === id).length);
        const total = starts.reduce((sum, count) => sum + count, 0);
        expect(Math.max(...starts), id).toBeLessThanOrEqual(1);
        if (!movable) expect(total, id).toBeLessThanOrEqual(1);
        if (job.result?.end === 'exited') expect(total, id).toBeGreaterThanOrEqual(1);
        // what fails says whether it was sent, and that is true
        if (job.result !== null) continue;
        expect(job.fault, id).toBeInstanceOf(RunnerError);
        // each runner can run each job, so the fault is not final
        if (job.fault instanceof RunnerError) expect(job.fault.code, id).not.toBe('runner_rejected');
        if (!movable && job.fault instanceof RunnerError && job.fault.beforeDispatch) expect(total, id).toBe(0);
      }
    }),
    { numRuns: 40, seed: 45 },
  );
});
