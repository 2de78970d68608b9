/** Generated histories whose programs run on several runners, of which some are lost while jobs run (R7). */
import { expect, test } from 'vitest';
import { fleetHistoryOf } from './fleet.ts';
import { factsOf } from './invariants/invariant.ts';
import { Thread } from './pool.ts';
import type { Answer } from './worker.ts';

const HISTORIES = 80;

test(`[S7] [R7] ${HISTORIES} histories violate no invariant: no program runs twice, whichever runner is lost`, async () => {
  const found: string[] = [];
  let programs = 0;
  let unknown = 0;
  await using thread = new Thread();
  for (let seed = 1; seed <= HISTORIES; seed += 1) {
    const { violations, seen }: Answer = await thread.run(fleetHistoryOf(seed), { isDetailed: true });
    for (const { invariant, what } of violations) found.push(`seed ${seed}: ${invariant}: ${what.slice(0, 600)}`);
    if (seen === null) continue;
    programs += factsOf(seen, 'effect').filter(({ target }) => target === 'python').length;
    unknown += seen.events.filter(
      (event) => event.type === 'action_failed' && event.data.error.code === 'outcome_unknown',
    ).length;
  }
  expect(found).toEqual([]);
  expect(programs).toBeGreaterThan(40);
  // Runners are lost while they work.
  expect(unknown).toBeGreaterThan(2);
});
