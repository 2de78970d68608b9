/** The simulation can fail: each invariant notices a broken promise of a port (switches.ts). */
import { afterAll, expect, test } from 'vitest';
import { INVARIANTS } from '../simulation/invariants/all.ts';
import { Thread } from '../simulation/pool.ts';
import { SWITCHES } from '../simulation/broken/switches.ts';

/** So many histories notice every fault. */
const MOST_HISTORIES = 1_000;

const thread = new Thread();
afterAll(async () => await thread[Symbol.asyncDispose]());

test.each(SWITCHES)('the simulation finds: $name', async ({ name, invariant }) => {
  for (let seed = 1; seed <= MOST_HISTORIES; seed += 1) {
    const { violations } = await thread.run(seed, { brokenBy: name });
    if (violations.some((violation) => violation.invariant === invariant)) return;
  }
  expect.fail(`"${invariant}" did not notice it in ${MOST_HISTORIES} histories`);
});

test('every invariant has a switch that it must notice', () => {
  const noticed = new Set(SWITCHES.map(({ invariant }) => invariant));
  expect([...noticed].toSorted()).toEqual(INVARIANTS.map(({ name }) => name).toSorted());
});

test('every switch has its own name', () => {
  expect(new Set(SWITCHES.map(({ name }) => name)).size).toBe(SWITCHES.length);
});
